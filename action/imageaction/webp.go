package imageaction

import (
	"context"
	"errors"
	"fmt"
	"image"
	"io"
	"runtime/debug"

	"github.com/pawlhq/pawl"
	"github.com/pawlhq/pawl/action/imageaction/internal/libwebp"
)

// libwebp may need as much memory as decoding did. encodeWebP therefore releases the decoder's
// memory first, and the picture as soon as libwebp has a copy.
func (p *picture) encodeWebP(ctx context.Context, w io.Writer, quality int) error {
	r := p.raster
	p.image, p.raster = nil, nil
	width, height := r.w, r.h
	releaseMemory(width * height)
	file, err := libwebp.Encode(ctx, width, height, quality, func(m *image.NYCbCrA) {
		r.yuva(m)
		r = nil
		releaseMemory(width * height)
	})
	switch {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case errors.Is(err, libwebp.ErrMemory):
		return pawl.Permanent(fmt.Errorf("cannot write the picture as WebP: %w", err))
	case err != nil:
		return fmt.Errorf("cannot write the picture as WebP: %w", err)
	}
	_, err = w.Write(file)
	return err
}

// For small pictures a garbage collection would take too long.
func releaseMemory(pixels int) {
	if pixels >= 1<<20 {
		debug.FreeOSMemory()
	}
}
