package imageaction

import (
	"bytes"
	"context"
	"fmt"
	"image"
	"image/jpeg"
	"image/png"
	"io"

	"github.com/pawlhq/pawl"
	"github.com/pawlhq/pawl/action/imageaction/internal/libwebp"
)

// Convert converts one picture like the handler of [New]. Errors that the picture causes are
// marked with [pawl.Permanent]; errors of r are not.
func Convert(ctx context.Context, r io.Reader, c Config) (content []byte, contentType string, err error) {
	c, err = c.withDefaults()
	if err != nil {
		return nil, "", err
	}
	file, err := load(r, 0, c)
	if err != nil {
		return nil, "", err
	}
	pic, err := file.convert(ctx, c)
	if err != nil {
		return nil, "", err
	}
	var out bytes.Buffer
	if err := pic.encode(ctx, &out, c); err != nil {
		return nil, "", err
	}
	return out.Bytes(), pic.contentType(), nil
}

type picture struct {
	image  image.Image
	raster *raster // always set for WebP
	format string
}

// convert changes only what c requires: a PNG with 16 bits per channel may keep its depth.
func (f *file) convert(ctx context.Context, c Config) (*picture, error) {
	p := &picture{format: f.outputFormat(c)}
	orient := orientation(f.data, f.format)
	img, err := f.decode(ctx)
	if err != nil {
		return nil, err
	}
	b := img.Bounds()
	boxW, boxH := c.Width, c.Height
	if orient.swapsSides() {
		boxW, boxH = boxH, boxW
	}
	w, h := fit(b.Dx(), b.Dy(), boxW, boxH)
	flatten := p.format == formatJPEG && !opaque(img)
	p.image = img
	if c.Grayscale || flatten || p.format == formatWebP || orient != uprightOrientation || w != b.Dx() || h != b.Dy() {
		r := rasterOf(img, c.Grayscale)
		if r, err = r.resize(ctx, w, h); err != nil {
			return nil, err
		}
		r = r.orient(orient)
		if flatten {
			r.flatten()
		}
		p.image, p.raster = r.image(), r
	}
	return p, p.check()
}

// maxSides is in pixels.
var maxSides = map[string]int{formatJPEG: 65535, formatWebP: libwebp.MaxSide}

func (p *picture) check() error {
	limit, limited := maxSides[p.format]
	if b := p.image.Bounds(); limited && max(b.Dx(), b.Dy()) > limit {
		return pawl.Permanent(fmt.Errorf("%d × %d pixels are too many for the format %s: choose png, or a width and height of at most %d",
			b.Dx(), b.Dy(), p.format, limit))
	}
	return nil
}

func (p *picture) contentType() string { return "image/" + p.format }

// encode releases the picture, which the caller must not use afterwards.
func (p *picture) encode(ctx context.Context, w io.Writer, c Config) error {
	w = &cancelWriter{ctx, w}
	switch p.format {
	case formatJPEG:
		return jpeg.Encode(w, p.image, &jpeg.Options{Quality: c.quality(p.format)})
	case formatWebP:
		return p.encodeWebP(ctx, w, c.quality(p.format))
	}
	return png.Encode(w, p.image)
}

type cancelWriter struct {
	ctx context.Context
	w   io.Writer
}

func (c *cancelWriter) Write(b []byte) (int, error) {
	if c.ctx.Err() != nil {
		return 0, context.Cause(c.ctx)
	}
	return c.w.Write(b)
}
