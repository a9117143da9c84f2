package demo

import (
	"bytes"
	"image"
	"image/color"
	"testing"
)

func TestPictures(t *testing.T) {
	for _, p := range []picture{
		{seed: 1, width: 640, height: 480, format: "jpeg"},
		{seed: 2, width: 48, height: 64, format: "png"},
	} {
		file, err := p.file()
		if err != nil {
			t.Fatal(err)
		}
		again, err := p.file()
		if err != nil || !bytes.Equal(file, again) {
			t.Errorf("%+v became two files (%v)", p, err)
		}
		p.seed++
		if other, err := p.file(); err != nil || bytes.Equal(file, other) {
			t.Errorf("%+v is as the one before (%v)", p, err)
		}
		img, format, err := image.Decode(bytes.NewReader(file))
		if err != nil {
			t.Fatal(err)
		}
		if format != p.format || img.Bounds() != image.Rect(0, 0, p.width, p.height) {
			t.Errorf("%+v became %s of %v", p, format, img.Bounds())
		}
		if n := colours(img); n < 20 {
			t.Errorf("%+v has %d colours, and not one that is not gray would be missed", p, n)
		}
	}
}

func colours(img image.Image) int {
	seen := map[color.Color]bool{}
	b := img.Bounds()
	for y := b.Min.Y; y < b.Max.Y; y++ {
		for x := b.Min.X; x < b.Max.X; x++ {
			if c := color.RGBAModel.Convert(img.At(x, y)).(color.RGBA); c.R != c.G || c.G != c.B {
				seen[c] = true
			}
		}
	}
	return len(seen)
}
