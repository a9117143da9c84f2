// Package imageaction converts pictures to grayscale, a smaller size, or another format.
//
// It reads JPEG, PNG, GIF (the first frame) and WebP (not animated), and writes JPEG, PNG and
// WebP (lossy). The output is upright and has no metadata. The same input and configuration
// always result in the same bytes. A damaged or too large object, or one that is not a picture,
// is a permanent error.
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

// Config configures the conversion. The zero value only applies the orientation and removes the
// metadata.
type Config struct {
	// Grayscale converts colours to their luma (ITU-R BT.601) and keeps alpha.
	Grayscale bool `yaml:"grayscale"`
	// Width and Height are the maximum size in pixels; 0 means unlimited. Pictures keep their
	// proportions and are not enlarged.
	Width  int `yaml:"width"`
	Height int `yaml:"height"`
	// Format is "jpeg", "png" or "webp". Default jpeg for JPEG input, otherwise png. In JPEG,
	// transparent areas become white.
	Format string `yaml:"format"`
	// Quality of JPEG or WebP is 1 to 100. Default 85 for JPEG, 75 for WebP.
	Quality int `yaml:"quality"`
	// MaxPixels limits a picture. Default 25,000,000.
	MaxPixels int64 `yaml:"max_pixels"`
	// MaxBytes limits a file. Default 64 MiB.
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

// New returns a handler whose pipeline needs an output.
func New(c Config) (pawl.Handler, error) {
	c, err := c.withDefaults()
	if err != nil {
		return nil, err
	}
	return &handler{config: c}, nil
}

// Concurrency implements [pawl.Limited]: one picture for every two cores, because other pipelines
// also need cores. A picture takes at most 28 bytes per pixel.
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
	_ = body.Close()
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
