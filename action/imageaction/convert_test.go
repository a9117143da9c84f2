package imageaction

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"image"
	"image/color"
	"image/color/palette"
	"image/draw"
	"image/jpeg"
	"image/png"
	"testing"

	xdraw "golang.org/x/image/draw"
	"golang.org/x/image/webp"
)

func convert(t *testing.T, in []byte, c Config) (img image.Image, contentType string) {
	t.Helper()
	out, contentType, err := Convert(t.Context(), bytes.NewReader(in), c)
	if err != nil {
		t.Fatal(err)
	}
	again, _, err := Convert(t.Context(), bytes.NewReader(in), c)
	if err != nil || !bytes.Equal(out, again) {
		t.Fatalf("equal input gave different bytes (%v)", err)
	}
	img, format, err := image.Decode(bytes.NewReader(out))
	if err != nil {
		t.Fatal(err)
	}
	if "image/"+format != contentType {
		t.Fatalf("content type %s of a %s picture", contentType, format)
	}
	return img, contentType
}

func comparePixels(t *testing.T, got, want image.Image, tolerance int) {
	t.Helper()
	if got.Bounds().Size() != want.Bounds().Size() {
		t.Fatalf("size %v, want %v", got.Bounds().Size(), want.Bounds().Size())
	}
	for y := range got.Bounds().Dy() {
		for x := range got.Bounds().Dx() {
			g := color.NRGBAModel.Convert(at(got, x, y)).(color.NRGBA)
			w := color.NRGBAModel.Convert(at(want, x, y)).(color.NRGBA)
			if g.A == 0 && w.A == 0 {
				continue // an invisible colour
			}
			for i, d := range [4]int{int(g.R) - int(w.R), int(g.G) - int(w.G), int(g.B) - int(w.B), int(g.A) - int(w.A)} {
				if max(d, -d) > tolerance {
					t.Fatalf("pixel %d,%d is %v, want %v: channel %d is off by %d", x, y, g, w, i, d)
				}
			}
		}
	}
}

func at(m image.Image, x, y int) color.Color { return m.At(m.Bounds().Min.X+x, m.Bounds().Min.Y+y) }

func mapped(m image.Image, f func(color.Color) color.Color) image.Image {
	out := image.NewNRGBA64(image.Rect(0, 0, m.Bounds().Dx(), m.Bounds().Dy()))
	for y := range m.Bounds().Dy() {
		for x := range m.Bounds().Dx() {
			out.Set(x, y, f(at(m, x, y)))
		}
	}
	return out
}

func grayModel(m image.Image) image.Image { return mapped(m, color.GrayModel.Convert) }

func TestGrayscaleOfRGB(t *testing.T) {
	size := image.Rect(0, 0, 61, 47)
	paletted := image.NewPaletted(size, palette.Plan9)
	deep := image.NewRGBA64(size)
	paint(paletted, 3)
	paint(deep, 4)
	for name, m := range map[string]image.Image{
		"RGB": photo(61, 47), "palette": paletted, "16 bits": deep, "gray": grayModel(photo(9, 9)),
	} {
		t.Run(name, func(t *testing.T) {
			got, _ := convert(t, encodePNG(t, m), Config{Grayscale: true})
			if _, ok := got.(*image.Gray); !ok {
				t.Errorf("an opaque picture became %T, want one channel", got)
			}
			comparePixels(t, got, grayModel(m), 0)
		})
	}
	t.Run("colours all over", func(t *testing.T) {
		m := image.NewRGBA(image.Rect(0, 0, 52*52, 52))
		for i := range m.Rect.Dx() {
			for j := range m.Rect.Dy() {
				m.SetRGBA(i, j, color.RGBA{uint8(i % 52 * 5), uint8(i / 52 * 5), uint8(j * 5), 255})
			}
		}
		comparePixels(t, rasterOf(m, true).image(), grayModel(m), 0)
	})
}

func TestGrayscaleOfJPEGIsItsLuma(t *testing.T) {
	for _, side := range []int{1, 7, 8, 16, 17, 64} { // with padded and full planes
		in := encodeJPEG(t, photo(side, side+3))
		stored, err := jpeg.Decode(bytes.NewReader(in))
		if err != nil {
			t.Fatal(err)
		}
		y := stored.(*image.YCbCr)
		got, contentType := convert(t, in, Config{Grayscale: true, Format: "png"})
		if contentType != "image/png" {
			t.Errorf("content type %s", contentType)
		}
		comparePixels(t, got, &image.Gray{Pix: y.Y, Stride: y.YStride, Rect: y.Rect}, 0)

		got, _ = convert(t, in, Config{Grayscale: true, Quality: 100})
		if _, ok := got.(*image.Gray); !ok {
			t.Errorf("became %T, want one channel", got)
		}
		comparePixels(t, got, &image.Gray{Pix: y.Y, Stride: y.YStride, Rect: y.Rect}, 3)
	}
	// The Y channel equals the formula for colours that RGB can represent.
	soft := mapped(photo(64, 64), func(c color.Color) color.Color {
		v := color.NRGBAModel.Convert(c).(color.NRGBA)
		return color.NRGBA{96 + v.R/4, 96 + v.G/4, 96 + v.B/4, 255}
	})
	got, _ := convert(t, encodeJPEG(t, soft), Config{Grayscale: true, Format: "png"})
	stored, _ := jpeg.Decode(bytes.NewReader(encodeJPEG(t, soft)))
	comparePixels(t, got, grayModel(stored), 1)
}

func TestGrayscaleKeepsAlpha(t *testing.T) {
	in := translucentPicture(40, 30)
	want := image.NewNRGBA(in.Rect)
	for i := 0; i < len(in.Pix); i += 4 {
		g := color.GrayModel.Convert(color.RGBA{in.Pix[i], in.Pix[i+1], in.Pix[i+2], 255}).(color.Gray).Y
		copy(want.Pix[i:], []uint8{g, g, g, in.Pix[i+3]})
	}
	got, _ := convert(t, encodePNG(t, in), Config{Grayscale: true})
	comparePixels(t, got, want, 0)

	deep := image.NewNRGBA64(in.Rect)
	draw.Draw(deep, in.Rect, in, image.Point{}, draw.Src)
	got, _ = convert(t, encodePNG(t, deep), Config{Grayscale: true})
	_, _, _, a := got.At(20, 20).RGBA()
	if _, _, _, want := in.At(20, 20).RGBA(); a != want {
		t.Errorf("alpha %d, want %d", a, want)
	}
}

func TestJPEGOfTransparentPictureIsOnWhite(t *testing.T) {
	in := translucentPicture(64, 64)
	onWhite := image.NewRGBA(in.Rect)
	draw.Draw(onWhite, in.Rect, image.White, image.Point{}, draw.Src)
	draw.Draw(onWhite, in.Rect, in, image.Point{}, draw.Over)

	f, err := load(bytes.NewReader(encodePNG(t, in)), 0, Config{MaxBytes: 1 << 20, MaxPixels: 1 << 20})
	if err != nil {
		t.Fatal(err)
	}
	pic, err := f.convert(t.Context(), Config{Format: "jpeg"})
	if err != nil {
		t.Fatal(err)
	}
	comparePixels(t, pic.image, onWhite, 1)

	got, _ := convert(t, encodePNG(t, in), Config{Format: "jpeg", Grayscale: true})
	if r, _, _, _ := got.At(0, 32).RGBA(); r>>8 < 250 {
		t.Errorf("a clear pixel became %d, want white", r>>8)
	}
}

func TestFormats(t *testing.T) {
	m := photo(32, 24)
	frame := image.NewPaletted(m.Rect, palette.WebSafe)
	draw.Draw(frame, m.Rect, m, image.Point{}, draw.Src)
	in := map[string][]byte{
		"jpeg": encodeJPEG(t, m), "png": encodePNG(t, m), "gif": encodeGIF(t, 32, 24, frame), "webp": testdata(t, "lossy.webp"),
	}
	for _, tt := range []struct{ in, format, want string }{
		{"jpeg", "", "image/jpeg"}, {"png", "", "image/png"}, {"gif", "", "image/png"}, {"webp", "", "image/png"},
		{"jpeg", "png", "image/png"}, {"png", "jpeg", "image/jpeg"}, {"gif", "jpeg", "image/jpeg"}, {"webp", "jpeg", "image/jpeg"},
	} {
		if _, got := convert(t, in[tt.in], Config{Format: tt.format}); got != tt.want {
			t.Errorf("%s to %q is %s, want %s", tt.in, tt.format, got, tt.want)
		}
	}
	got, _ := convert(t, in["png"], Config{})
	comparePixels(t, got, m, 0)
	got, _ = convert(t, in["gif"], Config{})
	comparePixels(t, got, frame, 0)
}

func TestUnchangedPictureKeeps16Bits(t *testing.T) {
	m := image.NewRGBA64(image.Rect(0, 0, 20, 20))
	paint(m, 5)
	got, _ := convert(t, pngWithEXIF(encodePNG(t, m), exif(binary.LittleEndian, 1)), Config{})
	if out, ok := got.(*image.RGBA64); !ok || !bytes.Equal(out.Pix, m.Pix) {
		t.Errorf("16 bits per channel became %T, or changed", got)
	}
}

func TestGIFFirstFrame(t *testing.T) {
	pal := color.Palette{color.RGBA{}, color.RGBA{200, 10, 10, 255}, color.RGBA{10, 200, 10, 255}}
	first := image.NewPaletted(image.Rect(2, 3, 6, 7), pal)
	second := image.NewPaletted(image.Rect(0, 0, 10, 12), pal)
	for i := range first.Pix {
		first.Pix[i] = 1
	}
	for i := range second.Pix {
		second.Pix[i] = 2
	}
	want := image.NewNRGBA(image.Rect(0, 0, 10, 12))
	draw.Draw(want, first.Rect, first, first.Rect.Min, draw.Src)
	got, _ := convert(t, encodeGIF(t, 10, 12, first, second), Config{})
	comparePixels(t, got, want, 0)
}

func TestWebP(t *testing.T) {
	t.Run("lossy has the contrast of its original", func(t *testing.T) {
		original, err := png.Decode(bytes.NewReader(testdata(t, "lossy-original.png")))
		if err != nil {
			t.Fatal(err)
		}
		for _, gray := range []bool{false, true} {
			got, _ := convert(t, testdata(t, "lossy.webp"), Config{Grayscale: gray})
			bias := 0.0
			for y := range got.Bounds().Dy() {
				for x := range got.Bounds().Dx() {
					g := color.GrayModel.Convert(got.At(x, y)).(color.Gray).Y
					w := color.GrayModel.Convert(original.At(x, y)).(color.Gray).Y
					bias += float64(g) - float64(w)
				}
			}
			bias /= float64(got.Bounds().Dx() * got.Bounds().Dy())
			if bias < -0.5 || bias > 0.5 { // 5.2 with the planes of x/image/webp
				t.Errorf("grayscale %v: on average %.2f brighter than the original", gray, bias)
			}
		}
	})
	t.Run("lossless keeps alpha", func(t *testing.T) {
		want, err := webp.Decode(bytes.NewReader(testdata(t, "lossless-alpha.webp")))
		if err != nil {
			t.Fatal(err)
		}
		got, _ := convert(t, testdata(t, "lossless-alpha.webp"), Config{})
		comparePixels(t, got, want, 0)
	})
}

func TestOrientation(t *testing.T) {
	// EXIF 2.32, 4.6.4
	seen := map[exifOrientation]func(x, y, w, h int) (int, int){
		1: func(x, y, _, _ int) (int, int) { return x, y },
		2: func(x, y, w, _ int) (int, int) { return w - 1 - x, y },
		3: func(x, y, w, h int) (int, int) { return w - 1 - x, h - 1 - y },
		4: func(x, y, _, h int) (int, int) { return x, h - 1 - y },
		5: func(x, y, _, _ int) (int, int) { return y, x },
		6: func(x, y, _, h int) (int, int) { return y, h - 1 - x },
		7: func(x, y, w, h int) (int, int) { return w - 1 - y, h - 1 - x },
		8: func(x, y, w, _ int) (int, int) { return w - 1 - y, x },
	}
	const w, h = 24, 16
	colour, gray := photo(w, h), grayModel(photo(w, h))
	lossless := testdata(t, "lossless-alpha.webp")
	animal, err := webp.Decode(bytes.NewReader(lossless))
	if err != nil {
		t.Fatal(err)
	}
	inputs := []struct {
		name   string
		stored image.Image
		file   func(tiff []byte) []byte
		config Config
	}{
		{"png", colour, func(b []byte) []byte { return pngWithEXIF(encodePNG(t, colour), b) }, Config{}},
		{"png to gray", gray, func(b []byte) []byte { return pngWithEXIF(encodePNG(t, colour), b) }, Config{Grayscale: true}},
		{"webp", animal, func(b []byte) []byte {
			return webpExtended(lossless, animal.Bounds().Dx(), animal.Bounds().Dy(), 1<<3, b)
		}, Config{}},
	}
	for o, from := range seen {
		for _, order := range []binary.AppendByteOrder{binary.LittleEndian, binary.BigEndian} {
			for _, in := range inputs {
				t.Run(fmt.Sprint(in.name, " ", int(o), " ", order), func(t *testing.T) {
					w, h := in.stored.Bounds().Dx(), in.stored.Bounds().Dy()
					want := image.NewNRGBA(image.Rect(0, 0, w, h))
					if o >= 5 {
						want = image.NewNRGBA(image.Rect(0, 0, h, w))
					}
					for y := range want.Rect.Dy() {
						for x := range want.Rect.Dx() {
							sx, sy := from(x, y, w, h)
							want.Set(x, y, at(in.stored, sx, sy))
						}
					}
					got, _ := convert(t, in.file(exif(order, o)), in.config)
					comparePixels(t, got, want, 0)
				})
			}
		}
	}
}

func TestOrientationOfJPEG(t *testing.T) {
	in := jpegWithEXIF(encodeJPEG(t, photo(40, 20)), exif(binary.BigEndian, 6))
	got, _ := convert(t, in, Config{Grayscale: true, Width: 10, Height: 100})
	if got.Bounds().Dx() != 10 || got.Bounds().Dy() != 20 {
		t.Errorf("size %v: the box must hold the upright picture, 20 × 40", got.Bounds().Size())
	}
	out, _, err := Convert(t.Context(), bytes.NewReader(in), Config{})
	if err != nil {
		t.Fatal(err)
	}
	if bytes.Contains(out, []byte("Exif")) {
		t.Error("metadata was copied")
	}
	for _, tiff := range [][]byte{nil, []byte("II*\x00"), exif(binary.LittleEndian, 0), exif(binary.LittleEndian, 9), bytes.Repeat([]byte{0xff}, 60)} {
		got, _ := convert(t, jpegWithEXIF(encodeJPEG(t, photo(40, 20)), tiff), Config{})
		if got.Bounds().Dx() != 40 {
			t.Errorf("EXIF % x rotated the picture", tiff)
		}
	}
}

func TestFit(t *testing.T) {
	for _, tt := range []struct{ w, h, boxW, boxH, wantW, wantH int }{
		{100, 50, 0, 0, 100, 50}, {100, 50, 200, 200, 100, 50}, {100, 50, 50, 0, 50, 25}, {100, 50, 0, 10, 20, 10},
		{100, 50, 10, 10, 10, 5}, {50, 100, 10, 10, 5, 10}, {100, 50, 80, 40, 80, 40}, {3, 2, 2, 2, 2, 1},
		{10000, 1, 10, 10, 10, 1}, {1, 10000, 10, 10, 1, 10}, {65535, 65535, 1, 1, 1, 1}, {4000, 3000, 1024, 0, 1024, 768},
	} {
		if w, h := fit(tt.w, tt.h, tt.boxW, tt.boxH); w != tt.wantW || h != tt.wantH {
			t.Errorf("fit(%d, %d, %d, %d) = %d, %d, want %d, %d", tt.w, tt.h, tt.boxW, tt.boxH, w, h, tt.wantW, tt.wantH)
		}
	}
}

func TestResizeIsCatmullRom(t *testing.T) {
	for _, size := range [][4]int{{200, 150, 100, 75}, {200, 150, 199, 149}, {97, 61, 13, 8}, {40, 400, 1, 10}, {300, 2, 7, 1}, {5, 5, 2, 2}} {
		w, h := size[2], size[3]
		t.Run(fmt.Sprint(size), func(t *testing.T) {
			colour, clear := photo(size[0], size[1]), translucentPicture(size[0], size[1])
			gray := rasterOf(colour, true).image().(*image.Gray)
			for _, m := range []image.Image{colour, clear, gray} {
				want := image.NewRGBA64(image.Rect(0, 0, w, h))
				xdraw.CatmullRom.Scale(want, want.Rect, m, m.Bounds(), draw.Src, nil)
				got, err := rasterOf(m, false).resize(t.Context(), w, h)
				if err != nil {
					t.Fatal(err)
				}
				if m == image.Image(clear) { // mostly rounding errors
					comparePixels(t, premultiplied(got.image()), premultiplied(want), 1)
				} else {
					comparePixels(t, got.image(), want, 1)
				}
			}
		})
	}
	flat := newRaster(50, 40, 1)
	for i := range flat.pix {
		flat.pix[i] = 99
	}
	got, err := flat.resize(t.Context(), 17, 13)
	if err != nil {
		t.Fatal(err)
	}
	for i, v := range got.pix {
		if v != 99 {
			t.Fatalf("pixel %d of an even picture became %d", i, v)
		}
	}
}

func premultiplied(m image.Image) image.Image {
	return mapped(m, func(c color.Color) color.Color {
		r, g, b, a := c.RGBA()
		return color.NRGBA64{uint16(min(r, a)), uint16(min(g, a)), uint16(min(b, a)), 0xffff}
	})
}
