package imageaction

import (
	"context"
	"math"

	"golang.org/x/image/draw"
)

// fit returns the largest size with the same proportions that fits into the box and is not
// larger. 0 means unlimited.
func fit(w, h, boxW, boxH int) (int, int) {
	if boxW > 0 && w > boxW {
		w, h = boxW, scaled(h, boxW, w)
	}
	if boxH > 0 && h > boxH {
		w, h = scaled(w, boxH, h), boxH
	}
	return w, h
}

func scaled(n, num, den int) int {
	return max(1, int((2*int64(n)*int64(num)+int64(den))/(2*int64(den))))
}

// resize applies a Catmull-Rom filter, like draw.CatmullRom.Scale, but row by row. The library is
// slower (see BenchmarkResize), and its memory would exceed the limit in docs/ACTIONS.md.
//
// Products are converted to float32 before they are added. This prevents fused operations, so
// that the result is the same on every machine.
func (r *raster) resize(ctx context.Context, w, h int) (*raster, error) {
	if w == r.w && h == r.h {
		return r, nil
	}
	columns, rows := spansFor(r.w, w), spansFor(r.h, h)
	out := newRaster(w, h, r.n)
	window := newWindow(r, w, columns, rows)
	sum := make([]float32, w*r.n)
	for y, span := range rows {
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		clear(sum)
		for i, weight := range span.weights {
			addScaled(sum, window.row(span.first+i), weight)
		}
		out.store(y, sum)
	}
	return out, nil
}

// span is one output pixel as a weighted sum of input pixels from first.
type span struct {
	first   int
	weights []float32
}

func spansFor(from, to int) []span {
	kernel := draw.CatmullRom
	scale := float64(from) / float64(to)
	support := kernel.Support * scale
	spans := make([]span, to)
	for i := range spans {
		center := float64((float64(i)+0.5)*scale) - 0.5
		first := max(0, int(math.Ceil(center-support)))
		last := min(from-1, int(math.Floor(center+support)))
		weights := make([]float64, last-first+1)
		total := 0.0
		for j := range weights {
			if t := math.Abs(center-float64(first+j)) / scale; t < kernel.Support {
				weights[j] = kernel.At(t)
				total += weights[j]
			}
		}
		spans[i] = span{first: first, weights: make([]float32, len(weights))}
		for j, weight := range weights {
			spans[i].weights[j] = float32(weight / total)
		}
	}
	return spans
}

// window contains the input rows for the current output row, at the new width.
type window struct {
	in      *raster
	columns []span
	loaded  []float32
	rows    [][]float32
	next    int
}

func newWindow(in *raster, w int, columns, rows []span) *window {
	maxRows := 0
	for _, s := range rows {
		maxRows = max(maxRows, len(s.weights))
	}
	win := &window{in: in, columns: columns, loaded: make([]float32, in.w*in.n), rows: make([][]float32, maxRows)}
	for i := range win.rows {
		win.rows[i] = make([]float32, w*in.n)
	}
	return win
}

// Callers of row request ascending spans that are not longer than the window.
func (win *window) row(y int) []float32 {
	for ; win.next <= y; win.next++ {
		win.in.load(win.next, win.loaded)
		row := win.rows[win.next%len(win.rows)]
		if win.in.n == 1 {
			resizeGray(row, win.loaded, win.columns)
		} else {
			resizeColor(row, win.loaded, win.columns)
		}
	}
	return win.rows[y%len(win.rows)]
}

func resizeGray(out, in []float32, columns []span) {
	for x, s := range columns {
		var sum float32
		for i, v := range in[s.first:][:len(s.weights)] {
			sum += float32(v * s.weights[i])
		}
		out[x] = sum
	}
}

func resizeColor(out, in []float32, columns []span) {
	for x, s := range columns {
		var r, g, b, a float32
		p := in[4*s.first:]
		for _, weight := range s.weights {
			r += float32(p[0] * weight)
			g += float32(p[1] * weight)
			b += float32(p[2] * weight)
			a += float32(p[3] * weight)
			p = p[4:]
		}
		q := out[4*x:][:4]
		q[0], q[1], q[2], q[3] = r, g, b, a
	}
}

func addScaled(sum, row []float32, weight float32) {
	for i, v := range row[:len(sum)] {
		sum[i] += float32(v * weight)
	}
}

// load multiplies colours by alpha, so that invisible pixels do not influence their neighbours.
func (r *raster) load(y int, to []float32) {
	row := r.row(y)
	if r.n == 1 {
		for i, v := range row {
			to[i] = float32(v)
		}
		return
	}
	for i := 0; i < len(row); i += 4 {
		a := float32(row[i+3])
		share := a / 255
		to[i], to[i+1], to[i+2], to[i+3] = float32(row[i])*share, float32(row[i+1])*share, float32(row[i+2])*share, a
	}
}

func (r *raster) store(y int, from []float32) {
	row := r.row(y)
	if r.n == 1 {
		for i, v := range from {
			row[i] = clamp(v)
		}
		return
	}
	for i := 0; i < len(row); i += 4 {
		a := from[i+3]
		row[i+3] = clamp(a)
		if row[i+3] == 0 {
			continue
		}
		for c := range 3 {
			row[i+c] = clamp(from[i+c] * 255 / a)
		}
	}
}

func clamp(v float32) uint8 {
	return uint8(min(max(v, 0), 255) + 0.5)
}
