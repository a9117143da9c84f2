// Package imageaction converts pictures: grayscale, smaller, another format.
//
// It reads JPEG, PNG, GIF (the first frame) and WebP (not animated), and writes JPEG,
// PNG and WebP (lossy). The output is upright, as the EXIF orientation of the input
// requires, and has no metadata. Equal input and configuration give equal bytes.
//
// A picture that cannot be converted, because it is broken, too large or none
// at all, is a permanent error; a store that fails to deliver it is not.
package imageaction

import (
	"context"
	"errors"
	"fmt"
	"runtime"

	"github.com/pawlhq/pawl"
)

// Limits that hold where Config does not say otherwise.
const (
	DefaultQuality     = 85 // of JPEG
	DefaultWebPQuality = 75 // also libwebp's default
	DefaultMaxPixels   = 25_000_000
	DefaultMaxBytes    = 64 << 20
)

// Config says what becomes of a picture. The zero Config only turns it upright
// and drops its metadata.
type Config struct {
	// Grayscale reduces colours to their luma as of ITU-R BT.601: of a JPEG
	// its own Y channel, of other pictures what [color.GrayModel] makes of
	// the pixel. Alpha stays.
	Grayscale bool `yaml:"grayscale"`
	// Width and Height are the box in pixels that the picture is made to
	// fit, keeping its proportions; it is never enlarged. Zero: unlimited.
	Width  int `yaml:"width"`
	Height int `yaml:"height"`
	// Format of the output: "jpeg", "png" or "webp". Default: jpeg for JPEG, png for
	// all others. Transparency stays in PNG and WebP, and becomes white in JPEG.
	Format string `yaml:"format"`
	// Quality of JPEG or WebP output, 1 to 100. Default 85 for JPEG, 75 for WebP.
	Quality int `yaml:"quality"`
	// MaxPixels refuses pictures with more pixels. Default 25,000,000.
	MaxPixels int64 `yaml:"max_pixels"`
	// MaxBytes refuses files with more bytes. Default 64 MiB.
	MaxBytes int64 `yaml:"max_bytes"`
}

// checked returns c with its defaults, or says what is wrong with it.
func (c Config) withDefaults() (Config, error) {
	if c.MaxPixels == 0 {
		c.MaxPixels = DefaultMaxPixels
	}
	if c.MaxBytes == 0 {
		c.MaxBytes = DefaultMaxBytes
	}
	switch {
	case c.Width < 0 || c.Height < 0:
		return c, fmt.Errorf("image: width %d, height %d: must be positive, or 0 for unlimited", c.Width, c.Height)
	case c.Format != "" && c.Format != formatJPEG && c.Format != formatPNG && c.Format != formatWebP:
		return c, fmt.Errorf("image: format %q cannot be written: choose jpeg, png or webp", c.Format)
	case c.Quality < 0 || c.Quality > 100:
		return c, fmt.Errorf("image: quality %d: must be 1 to 100", c.Quality)
	case c.MaxPixels < 0 || c.MaxBytes < 0:
		return c, errors.New("image: max_pixels and max_bytes must be positive")
	}
	return c, nil
}

// quality returns the quality for an output format that has one.
func (c Config) quality(format string) int {
	switch {
	case c.Quality != 0:
		return c.Quality
	case format == formatWebP:
		return DefaultWebPQuality
	}
	return DefaultQuality
}

type handler struct {
	config Config
}

// New returns a handler whose output is the object's picture, converted as c
// says. Its pipeline needs an output.
func New(c Config) (pawl.Handler, error) {
	c, err := c.withDefaults()
	if err != nil {
		return nil, err
	}
	return &handler{config: c}, nil
}

// Concurrency implements [pawl.Limited]: one picture for every two cores, as decoding
// takes nothing but processor and memory, and other pipelines need a core as well. A picture takes 1 to 8 bytes a pixel
// decoded, up to 20 while a progressive JPEG is being decoded, and in colour 4 to 8
// more on its way out: up to 28 bytes a pixel, so 700 MB for 25,000,000 pixels, the default
// limit. libwebp takes up to 28 bytes a pixel after that memory is released.
func (h *handler) Concurrency() int { return max(1, runtime.GOMAXPROCS(0)/2) }

func (h *handler) Handle(ctx context.Context, t *pawl.Task) error {
	if err := h.config.checkBytes(t.Info.Size); err != nil {
		return fmt.Errorf("%s: %w", t.Object, err)
	}
	body, err := t.Open(ctx)
	if err != nil {
		return err
	}
	file, err := load(body, t.Info.Size, h.config)
	_ = body.Close() // it was only read from
	if err != nil {
		return fmt.Errorf("%s: %w", t.Object, err)
	}
	pic, err := file.convert(ctx, h.config)
	if err != nil {
		return fmt.Errorf("%s: %w", t.Object, err)
	}
	out, err := t.Output(pic.contentType())
	if err != nil {
		return err
	}
	return pic.encode(ctx, out, h.config)
}
