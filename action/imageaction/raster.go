package imageaction

import (
	"image"
	"image/color"
	"image/draw"
)

// n is 1 for opaque grays, and 4 for red, green, blue and alpha, not premultiplied.
type raster struct {
	pix          []uint8
	w, h, stride int
	n            int
}

func newRaster(w, h, n int) *raster {
	return &raster{pix: make([]uint8, w*h*n), w: w, h: h, stride: w * n, n: n}
}

func (r *raster) row(y int) []uint8 { return r.pix[y*r.stride:][:r.w*r.n] }

func (r *raster) image() image.Image {
	rect := image.Rect(0, 0, r.w, r.h)
	if r.n == 1 {
		return &image.Gray{Pix: r.pix, Stride: r.stride, Rect: rect}
	}
	m := &image.NRGBA{Pix: r.pix, Stride: r.stride, Rect: rect}
	if m.Opaque() { // image/jpeg is faster with RGBA
		return &image.RGBA{Pix: r.pix, Stride: r.stride, Rect: rect}
	}
	return m
}

func (r *raster) flatten() {
	if r.n == 1 {
		return
	}
	for y := range r.h {
		for p := r.row(y); len(p) > 0; p = p[4:] {
			a := uint32(p[3])
			for i := range 3 {
				p[i] = uint8((uint32(p[i])*a + 255*(255-a) + 127) / 255)
			}
			p[3] = 255
		}
	}
}

func opaque(img image.Image) bool {
	o, ok := img.(interface{ Opaque() bool })
	return ok && o.Opaque()
}

// rasterOf may share memory with img, which the caller must not use afterwards.
func rasterOf(img image.Image, gray bool) *raster {
	switch {
	case !opaque(img):
		r := translucent(img)
		if gray {
			r.desaturate()
		}
		return r
	case gray:
		return grayOf(img)
	}
	if m, ok := img.(*image.Gray); ok {
		return &raster{pix: m.Pix, w: m.Rect.Dx(), h: m.Rect.Dy(), stride: m.Stride, n: 1}
	}
	b := img.Bounds()
	m := image.NewRGBA(image.Rect(0, 0, b.Dx(), b.Dy()))
	draw.Draw(m, m.Rect, img, b.Min, draw.Src)
	return &raster{pix: m.Pix, w: b.Dx(), h: b.Dy(), stride: m.Stride, n: 4}
}

func translucent(img image.Image) *raster {
	b := img.Bounds()
	if m, ok := img.(*image.NRGBA); ok {
		return &raster{pix: m.Pix, w: b.Dx(), h: b.Dy(), stride: m.Stride, n: 4}
	}
	r := newRaster(b.Dx(), b.Dy(), 4)
	for y := range r.h {
		row := r.row(y)
		for x := range r.w {
			c := color.NRGBAModel.Convert(img.At(b.Min.X+x, b.Min.Y+y)).(color.NRGBA)
			row[4*x], row[4*x+1], row[4*x+2], row[4*x+3] = c.R, c.G, c.B, c.A
		}
	}
	return r
}
