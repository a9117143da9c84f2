// Package imageaction converts pictures to grayscale, a smaller size, or another format.
//
// It reads JPEG, PNG, GIF (the first frame) and WebP (not animated), and writes JPEG, PNG and WebP
// (lossy). The output is upright, according to the EXIF orientation of the input, and has no
// metadata. The same input and configuration always result in the same bytes.
//
// If an object is damaged, too large, or not a picture, the attempt ends with a permanent error.
// Errors of the store are not permanent.
package imageaction

import (
	"context"
	"errors"
	"fmt"
	"runtime"

	"github.com/pawlhq/pawl"
)

// Defaults of Config.
const (
	DefaultQuality     = 85 // of JPEG
	DefaultWebPQuality = 75 // also libwebp's default
	DefaultMaxPixels   = 25_000_000
	DefaultMaxBytes    = 64 << 20
)

// Config configures the conversion. The zero Config only applies the orientation and removes the
// metadata.
type Config struct {
	// Grayscale converts colours to their luma according to ITU-R BT.601. The luma is the Y channel
	// of a JPEG, and the result of [color.GrayModel] for other pictures. Alpha is kept.
	Grayscale bool `yaml:"grayscale"`
	// Width and Height are the maximum width and height in pixels. 0 means unlimited. A larger
	// picture is reduced and keeps its proportions. A smaller one is not enlarged.
	Width  int `yaml:"width"`
	Height int `yaml:"height"`
	// Format is the format of the output: "jpeg", "png" or "webp". The default is jpeg for JPEG
	// input, and png for all other input. PNG and WebP keep transparency. In JPEG, transparent
	// areas become white.
	Format string `yaml:"format"`
	// Quality is the quality of JPEG or WebP output, 1 to 100. Default 85 for JPEG, 75 for WebP.
	Quality int `yaml:"quality"`
	// MaxPixels is the maximum number of pixels of a picture. Default 25,000,000.
	MaxPixels int64 `yaml:"max_pixels"`
	// MaxBytes is the maximum size of a file in bytes. Default 64 MiB.
	MaxBytes int64 `yaml:"max_bytes"`
}

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

// New returns a handler that converts the object as c requires. Its pipeline needs an output.
func New(c Config) (pawl.Handler, error) {
	c, err := c.withDefaults()
	if err != nil {
		return nil, err
	}
	return &handler{config: c}, nil
}

// Concurrency implements [pawl.Limited]. It returns one picture for every two cores, because
// decoding only needs processor time and memory, and other pipelines also need cores. A picture
// takes 1 to 8 bytes per pixel after decoding, and up to 20 while a progressive JPEG is decoded.
// The conversion of a colour picture takes 4 to 8 bytes per pixel more. The maximum is 28 bytes per
// pixel, which is 700 MB for the default limit of 25,000,000 pixels. libwebp takes up to 28 bytes
// per pixel, but only after the other memory is released.
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
	_ = body.Close() // nothing was written
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
