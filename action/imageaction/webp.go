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

// manyPixels is the size from which a picture's memory is worth a garbage collection.
const manyPixels = 1 << 20

// encodeWebP drops the picture as soon as libwebp has a copy, because libwebp may then
// need as much memory as decoding did.
func (p *picture) encodeWebP(ctx context.Context, w io.Writer, quality int) error {
	r := p.raster
	p.image, p.raster = nil, nil
	width, height := r.w, r.h
	file, err := libwebp.Encode(ctx, width, height, quality, func(m *image.NYCbCrA) {
		r.yuva(m)
		r = nil
		if width*height >= manyPixels {
			debug.FreeOSMemory()
		}
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
