package parts

import (
	"context"

	"github.com/pawlhq/pawl"
	"github.com/pawlhq/pawl/action/imageaction"
	"github.com/pawlhq/pawl/cmd/pawl/config"
)

// Image makes another picture of a picture.
type Image struct {
	// Where the picture goes: s3://bucket/prefix/. Its key is that prefix,
	// then the input's key after the matched prefix, then the suffix.
	To config.Location `yaml:"to" jsonschema:"required"`
	// What the output's key ends with, after the input's.
	Suffix string `yaml:"suffix"`
	// Drop the colours.
	Grayscale bool `yaml:"grayscale"`
	// Shrink to fit this width, in pixels. Default: as wide as it is.
	Width int `yaml:"width"`
	// Shrink to fit this height, in pixels. Default: as high as it is.
	Height int `yaml:"height"`
	// Output format. Default: jpeg for JPEG, png for all others.
	Format string `yaml:"format" jsonschema:"enum=jpeg,enum=png,enum=webp"`
	// Quality of a JPEG or WebP picture, 1 to 100. Default: 85 for JPEG, 75 for WebP.
	Quality int `yaml:"quality"`
	// Pictures with more pixels are refused. Default: 25000000.
	MaxPixels int `yaml:"max_pixels"`
	// Files that are larger are refused. Default: 64MiB.
	MaxBytes config.Size `yaml:"max_bytes"`
}

// Build implements [Action].
func (i Image) Build(_ context.Context, _ *Assembly, p *pawl.Pipeline) (err error) {
	p.To = output(i.To, i.Suffix)
	p.Handler, err = imageaction.New(imageaction.Config{
		Grayscale: i.Grayscale, Width: i.Width, Height: i.Height, Format: i.Format, Quality: i.Quality,
		MaxPixels: int64(i.MaxPixels), MaxBytes: int64(i.MaxBytes),
	})
	return err
}
