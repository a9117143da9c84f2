package imageaction

import (
	"bytes"
	"image"
	"image/draw"
	"testing"

	xdraw "golang.org/x/image/draw"
)

// The photograph has 12 megapixels, as from a phone.
const benchW, benchH = 4000, 3000

func BenchmarkConvert(b *testing.B) {
	in := encodeJPEG(b, photo(benchW, benchH))
	for name, c := range map[string]Config{
		"gray":         {Grayscale: true},
		"gray to 1024": {Grayscale: true, Width: 1024},
		"1024":         {Width: 1024},
	} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			b.SetBytes(int64(len(in)))
			for b.Loop() {
				if _, _, err := Convert(b.Context(), bytes.NewReader(in), c); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func BenchmarkResize(b *testing.B) {
	const w, h = 1024, 768
	colour := photo(benchW, benchH)
	gray := rasterOf(colour, true)
	for name, m := range map[string]image.Image{"colour": colour, "gray": gray.image()} {
		b.Run("ours/"+name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, err := rasterOf(m, false).resize(b.Context(), w, h); err != nil {
					b.Fatal(err)
				}
			}
		})
		b.Run("library/"+name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				out := image.NewRGBA(image.Rect(0, 0, w, h))
				xdraw.CatmullRom.Scale(out, out.Rect, m, m.Bounds(), draw.Src, nil)
			}
		})
	}
}
