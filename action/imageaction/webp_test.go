package imageaction

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"image"
	"image/color"
	"image/color/palette"
	"math"
	"strings"
	"testing"

	"golang.org/x/image/draw"

	"github.com/pawlhq/pawl/worker"
)

// decoded uses x/image for WebP, which shares no code with libwebp.
func decoded(t *testing.T, file []byte) *image.NRGBA {
	t.Helper()
	f, err := load(bytes.NewReader(file), 0, Config{MaxBytes: 1 << 30, MaxPixels: 1 << 30})
	if err != nil {
		t.Fatal(err)
	}
	img, err := f.decode(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return nrgba(img)
}

func nrgba(img image.Image) *image.NRGBA {
	m := image.NewNRGBA(image.Rect(0, 0, img.Bounds().Dx(), img.Bounds().Dy()))
	draw.Draw(m, m.Rect, img, img.Bounds().Min, draw.Src)
	return m
}

// psnr is in dB, without transparent pixels.
func psnr(t *testing.T, got, want *image.NRGBA) float64 {
	t.Helper()
	if got.Rect != want.Rect {
		t.Fatalf("size %v, want %v", got.Rect, want.Rect)
	}
	sum, n := 0.0, 0
	for i := range want.Pix {
		if i%4 == 3 || want.Pix[i|3] == 0 {
			continue
		}
		d := float64(got.Pix[i]) - float64(want.Pix[i])
		sum, n = sum+d*d, n+1
	}
	return 10 * math.Log10(255*255*float64(n)/sum)
}

func alphaOf(m *image.NRGBA) []uint8 {
	a := make([]uint8, 0, len(m.Pix)/4)
	for i := 3; i < len(m.Pix); i += 4 {
		a = append(a, m.Pix[i])
	}
	return a
}

func slopes(w, h int, translucent bool) *image.NRGBA {
	m := image.NewNRGBA(image.Rect(0, 0, w, h))
	for y := range h {
		for x := range w {
			c := color.NRGBA{R: uint8(40 + x*170/w), G: uint8(200 - y*150/h), B: uint8(60 + (x+y)*120/(w+h)), A: 255}
			if x > w/3 && y > h/2 {
				c.R, c.G = c.G, c.R
			}
			if translucent {
				c.A = uint8(x * 255 / (w - 1))
			}
			m.SetNRGBA(x, y, c)
		}
	}
	return m
}

func TestWebPIsWrittenFromEveryFormat(t *testing.T) {
	const w, h = 97, 61 // odd: the last column and row share no chroma
	opaque, clear := slopes(w, h, false), slopes(w, h, true)
	indexed := image.NewPaletted(opaque.Rect, palette.WebSafe)
	draw.FloydSteinberg.Draw(indexed, indexed.Rect, opaque, image.Point{})
	smooth := image.NewPaletted(opaque.Rect, palette.WebSafe)
	draw.Draw(smooth, smooth.Rect, opaque, image.Point{}, draw.Src)
	deep := image.NewNRGBA64(clear.Rect)
	draw.Draw(deep, deep.Rect, clear, image.Point{}, draw.Src)
	for name, tt := range map[string]struct {
		in     []byte
		config Config
		least  float64
	}{
		"jpeg":                     {encodeJPEG(t, opaque), Config{}, 38},
		"jpeg to gray":             {encodeJPEG(t, opaque), Config{Grayscale: true}, 40},
		"jpeg, quality 1":          {encodeJPEG(t, opaque), Config{Quality: 1}, 28},
		"jpeg, quality 100":        {encodeJPEG(t, opaque), Config{Quality: 100}, 42},
		"png":                      {encodePNG(t, opaque), Config{}, 34},
		"gray png":                 {encodePNG(t, grayOf(opaque).image()), Config{}, 40},
		"png with alpha":           {encodePNG(t, clear), Config{}, 34},
		"png with alpha, gray":     {encodePNG(t, clear), Config{Grayscale: true}, 36},
		"png with alpha, smaller":  {encodePNG(t, clear), Config{Width: 40}, 30},
		"png of 16 bits and alpha": {encodePNG(t, deep), Config{}, 34},
		"gif":                      {encodeGIF(t, w, h, smooth), Config{}, 30},
		"gif, dithered":            {encodeGIF(t, w, h, indexed), Config{}, 20},
		"lossy webp":               {testdata(t, "lossy.webp"), Config{}, 34},
		"lossless webp with alpha": {testdata(t, "lossless-alpha.webp"), Config{}, 30},
	} {
		t.Run(name, func(t *testing.T) {
			lossless := tt.config
			lossless.Format, tt.config.Format = formatPNG, formatWebP
			want, _, err := Convert(t.Context(), bytes.NewReader(tt.in), lossless)
			if err != nil {
				t.Fatal(err)
			}
			file, contentType, err := Convert(t.Context(), bytes.NewReader(tt.in), tt.config)
			if err != nil || contentType != "image/webp" {
				t.Fatalf("content type %q, error %v", contentType, err)
			}
			again, _, err := Convert(t.Context(), bytes.NewReader(tt.in), tt.config)
			if err != nil || !bytes.Equal(again, file) {
				t.Errorf("equal input gave different bytes (%v)", err)
			}
			got, original := decoded(t, file), decoded(t, want)
			ratio := psnr(t, got, original)
			t.Logf("%d bytes, as PNG %d; PSNR %.1f dB", len(file), len(want), ratio)
			if ratio < tt.least {
				t.Errorf("PSNR %.1f dB, want at least %.0f", ratio, tt.least)
			}
			if !bytes.Equal(alphaOf(got), alphaOf(original)) {
				t.Error("alpha changed")
			}
		})
	}
}

func TestWebPIsUpright(t *testing.T) {
	stored := slopes(48, 32, false)
	for o := exifOrientation(1); o <= 8; o++ {
		for name, in := range map[string][]byte{
			"jpeg": jpegWithEXIF(encodeJPEG(t, stored), exif(binary.BigEndian, o)),
			"png":  pngWithEXIF(encodePNG(t, stored), exif(binary.LittleEndian, o)),
		} {
			t.Run(fmt.Sprint(name, " ", int(o)), func(t *testing.T) {
				want, _, err := Convert(t.Context(), bytes.NewReader(in), Config{Format: formatPNG}) // verified by TestOrientation
				if err != nil {
					t.Fatal(err)
				}
				got, _, err := Convert(t.Context(), bytes.NewReader(in), Config{Format: formatWebP})
				if err != nil {
					t.Fatal(err)
				}
				if ratio := psnr(t, decoded(t, got), decoded(t, want)); ratio < 32 {
					t.Errorf("PSNR %.1f dB", ratio)
				}
				if bytes.Contains(got, []byte("EXIF")) {
					t.Error("metadata was copied")
				}
			})
		}
	}
}

func TestColourOfClearPixelsStaysInvisible(t *testing.T) {
	m := image.NewNRGBA(image.Rect(0, 0, 64, 64))
	for y := range 64 {
		for x := range 64 {
			m.SetNRGBA(x, y, color.NRGBA{R: 255, G: 0, B: 255}) // transparent
			if x >= 31 {                                        // the edge runs through blocks of 2 × 2 pixels
				m.SetNRGBA(x, y, color.NRGBA{R: 120, G: 120, B: 120, A: 255})
			}
		}
	}
	file, _, err := Convert(t.Context(), bytes.NewReader(encodePNG(t, m)), Config{Format: formatWebP, Quality: 95})
	if err != nil {
		t.Fatal(err)
	}
	if ratio := psnr(t, decoded(t, file), m); ratio < 35 {
		t.Errorf("PSNR %.1f dB of the visible half", ratio)
	}
}

func TestSidesOfWebPAreBounded(t *testing.T) {
	for _, size := range []image.Point{{16383, 1}, {1, 16383}, {1, 1}, {2, 3}} {
		in := encodePNG(t, image.NewGray(image.Rectangle{Max: size}))
		file, _, err := Convert(t.Context(), bytes.NewReader(in), Config{Format: formatWebP})
		if err != nil {
			t.Errorf("%v: %v", size, err)
		} else if got := decoded(t, file).Rect.Max; got != size {
			t.Errorf("%v became %v", size, got)
		}
	}
	in := encodePNG(t, image.NewGray(image.Rect(0, 0, 16384, 1)))
	_, _, err := Convert(t.Context(), bytes.NewReader(in), Config{Format: formatWebP})
	if !worker.IsPermanent(err) || !strings.Contains(err.Error(), "16384 × 1 pixels are too many for the format webp") {
		t.Errorf("error %v, want a permanent one about the size", err)
	}
}

func TestCancelledWebP(t *testing.T) {
	lost := errors.New("lease lost")
	ctx, cancel := context.WithCancelCause(t.Context())
	p := &picture{format: formatWebP, raster: rasterOf(photo(64, 64), false)}
	cancel(lost)
	var out bytes.Buffer
	if err := p.encode(ctx, &out, Config{}); !errors.Is(err, lost) || worker.IsPermanent(err) || out.Len() > 0 {
		t.Errorf("error %v after %d bytes, want the cause of the cancellation", err, out.Len())
	}
}
