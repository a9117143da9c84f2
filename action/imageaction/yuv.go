package imageaction

import "image"

// yuva writes the raster as a lossy WebP needs it: luma 16 to 235, chroma 16 to 240 for each 2 ×
// 2 pixels.
func (r *raster) yuva(m *image.NYCbCrA) {
	for y := range r.h {
		luma, alpha := m.Y[y*m.YStride:][:r.w], m.A[y*m.AStride:][:r.w]
		for x := range luma {
			red, green, blue, a := r.at(x, y)
			luma[x] = uint8((16839*red + 33059*green + 6420*blue + 16<<16 + 1<<15) >> 16)
			alpha[x] = uint8(a)
		}
	}
	for y := 0; y < r.h; y += 2 {
		cb, cr := m.Cb[y/2*m.CStride:], m.Cr[y/2*m.CStride:]
		for x := 0; x < r.w; x += 2 {
			red, green, blue := r.mean(x, y)
			cb[x/2] = uint8((-9719*red - 19081*green + 28800*blue + 128<<16 + 1<<15) >> 16)
			cr[x/2] = uint8((28800*red - 24116*green - 4684*blue + 128<<16 + 1<<15) >> 16)
		}
	}
}

func (r *raster) at(x, y int) (red, green, blue, alpha int) {
	p := r.pix[y*r.stride+x*r.n:]
	if r.n == 1 {
		return int(p[0]), int(p[0]), int(p[0]), 255
	}
	return int(p[0]), int(p[1]), int(p[2]), int(p[3])
}

// mean is weighted by alpha, so that transparent pixels do not influence their neighbours.
func (r *raster) mean(x, y int) (red, green, blue int) {
	total := 0
	for dy := range min(2, r.h-y) {
		for dx := range min(2, r.w-x) {
			pr, pg, pb, a := r.at(x+dx, y+dy)
			red, green, blue, total = red+pr*a, green+pg*a, blue+pb*a, total+a
		}
	}
	if total == 0 {
		return 0, 0, 0
	}
	half := total / 2
	return (red + half) / total, (green + half) / total, (blue + half) / total
}
