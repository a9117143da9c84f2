package imageaction

import (
	"image"
)

// luma computes the luma of ITU-R BT.601 with 16 bits per channel, as color.GrayModel does.
func luma(r, g, b uint32) uint8 {
	return uint8((19595*r + 38470*g + 7471*b + 1<<15) >> 24)
}

func luma8(r, g, b uint8) uint8 {
	return luma(uint32(r)*0x101, uint32(g)*0x101, uint32(b)*0x101)
}

// grayOf expects an opaque picture. The Y channel of a JPEG or a lossy WebP is its luma, without
// the rounding of colours.
func grayOf(img image.Image) *raster {
	b := img.Bounds()
	switch m := img.(type) {
	case *image.YCbCr:
		return &raster{pix: m.Y[m.YOffset(b.Min.X, b.Min.Y):], w: b.Dx(), h: b.Dy(), stride: m.YStride, n: 1}
	case *image.Gray:
		return &raster{pix: m.Pix[m.PixOffset(b.Min.X, b.Min.Y):], w: b.Dx(), h: b.Dy(), stride: m.Stride, n: 1}
	case *image.RGBA:
		return grayPixels(m.Pix[m.PixOffset(b.Min.X, b.Min.Y):], m.Stride, b)
	case *image.NRGBA:
		return grayPixels(m.Pix[m.PixOffset(b.Min.X, b.Min.Y):], m.Stride, b)
	case image.RGBA64Image:
		return grayAt(b, func(x, y int) uint8 {
			c := m.RGBA64At(x, y)
			return luma(uint32(c.R), uint32(c.G), uint32(c.B))
		})
	}
	return grayAt(b, func(x, y int) uint8 {
		r, g, bl, _ := img.At(x, y).RGBA()
		return luma(r, g, bl)
	})
}

func grayAt(b image.Rectangle, at func(x, y int) uint8) *raster {
	r := newRaster(b.Dx(), b.Dy(), 1)
	for y := range r.h {
		row := r.row(y)
		for x := range row {
			row[x] = at(b.Min.X+x, b.Min.Y+y)
		}
	}
	return r
}

func grayPixels(pix []uint8, stride int, b image.Rectangle) *raster {
	r := newRaster(b.Dx(), b.Dy(), 1)
	for y := range r.h {
		row, p := r.row(y), pix[y*stride:][:4*r.w]
		for x := range row {
			row[x] = luma8(p[4*x], p[4*x+1], p[4*x+2])
		}
	}
	return r
}

func (r *raster) desaturate() {
	for y := range r.h {
		for p := r.row(y); len(p) > 0; p = p[4:] {
			v := luma8(p[0], p[1], p[2])
			p[0], p[1], p[2] = v, v, v
		}
	}
}
