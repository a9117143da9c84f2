package parts

import (
	"context"

	"github.com/pawlhq/pawl"
	"github.com/pawlhq/pawl/action/imageaction"
	"github.com/pawlhq/pawl/cmd/pawl/config"
)

// Image converts a picture to another picture.
type Image struct {
	// Location of the output: s3://bucket/prefix/. The key of the output is this prefix,
	// followed by the part of the input's key after the matched prefix, followed by the suffix.
	To config.Location `yaml:"to" jsonschema:"required"`
	// Suffix that is appended to the key of the output. Default: none.
	Suffix string `yaml:"suffix"`
	// Convert to grayscale.
	Grayscale bool `yaml:"grayscale"`
	// Maximum width in pixels. Default: original width.
	Width int `yaml:"width"`
	// Maximum height in pixels. Default: original height.
	Height int `yaml:"height"`
	// Output format. Default: jpeg for JPEG, otherwise png.
	Format string `yaml:"format" jsonschema:"enum=jpeg,enum=png,enum=webp"`
	// Quality of a JPEG or WebP picture, 1 to 100. Default: 85 for JPEG, 75 for WebP.
	Quality int `yaml:"quality"`
	// Maximum number of pixels. Larger pictures fail permanently. Default: 25000000.
	MaxPixels int `yaml:"max_pixels"`
	// Maximum size of the input file. Larger files fail permanently. Default: 64MiB.
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
