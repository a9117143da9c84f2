package demo

import (
	"bytes"
	"image"
	"image/color"
	"image/jpeg"
	"image/png"
	"math"
	"math/rand/v2"
	"strings"
)

// picture describes a synthetic photograph. On one machine, equal descriptions yield equal files.
type picture struct {
	seed          uint64
	width, height int
	format        string
}

func newPicture(rng *rand.Rand, key string) *picture {
	p := &picture{seed: rng.Uint64(), width: 640, height: 480, format: "jpeg"}
	if rng.IntN(3) == 0 {
		p.width, p.height = p.height, p.width
	}
	if strings.HasSuffix(key, ".png") {
		p.format = "png"
	}
	return p
}

func (p *picture) contentType() string { return "image/" + p.format }

func (p *picture) file() ([]byte, error) {
	var out bytes.Buffer
	img := p.draw()
	if p.format == "png" {
		enc := png.Encoder{CompressionLevel: png.BestSpeed}
		err := enc.Encode(&out, img)
		return out.Bytes(), err
	}
	err := jpeg.Encode(&out, img, &jpeg.Options{Quality: 88})
	return out.Bytes(), err
}

type landscape struct {
	high, low color.RGBA // of the sky
	sun       color.RGBA
	sunX      float64
	sunY      float64
	sunR      float64
	ridges    []ridge
	grain     int
}

// ridge is a line of hills: a sum of waves.
type ridge struct {
	color color.RGBA
	line  []int // top in each column, in pixels from the top of the picture
}

func (p *picture) draw() *image.RGBA {
	rng := rand.New(rand.NewPCG(p.seed, 0x64656d6f))
	scene := p.compose(rng)
	img := image.NewRGBA(image.Rect(0, 0, p.width, p.height))
	for y := range p.height {
		sky := blend(scene.high, scene.low, float64(y)/float64(p.height))
		row := img.Pix[y*img.Stride:]
		for x := range p.width {
			c := scene.at(x, y, sky)
			g := 0
			if scene.grain > 0 {
				g = rng.IntN(2*scene.grain+1) - scene.grain
			}
			row[4*x], row[4*x+1], row[4*x+2], row[4*x+3] = shift(c.R, g), shift(c.G, g), shift(c.B, g), 255
		}
	}
	return img
}

func (p *picture) compose(rng *rand.Rand) *landscape {
	w, h := float64(p.width), float64(p.height)
	s := &landscape{
		high: anyColor(rng, 40, 160), low: anyColor(rng, 150, 255), sun: anyColor(rng, 220, 255),
		sunX: rng.Float64() * w, sunY: (0.1 + 0.4*rng.Float64()) * h, sunR: (0.04 + 0.08*rng.Float64()) * h,
	}
	if p.format == "jpeg" {
		s.grain = 6 // PNG would have to store all the grain
	}
	near := anyColor(rng, 10, 90)
	const ridges = 4
	for i := range ridges {
		depth := float64(i+1) / ridges
		s.ridges = append(s.ridges, ridge{
			color: blend(s.low, near, depth),
			line:  waves(rng, p.width, h*(0.35+0.5*depth), h*0.08),
		})
	}
	return s
}

// waves returns a wavy line around level, with an amplitude of about size.
func waves(rng *rand.Rand, width int, level, size float64) []int {
	line := make([]float64, width)
	for octave := 1.0; octave <= 16; octave *= 2 {
		phase, length := rng.Float64()*2*math.Pi, float64(width)/(octave*(0.7+rng.Float64()))
		for x := range line {
			line[x] += size / octave * math.Sin(phase+2*math.Pi*float64(x)/length)
		}
	}
	out := make([]int, width)
	for x, v := range line {
		out[x] = int(level + v)
	}
	return out
}

func (s *landscape) at(x, y int, sky color.RGBA) color.RGBA {
	for i := len(s.ridges) - 1; i >= 0; i-- {
		if y >= s.ridges[i].line[x] {
			return s.ridges[i].color
		}
	}
	dx, dy := float64(x)-s.sunX, float64(y)-s.sunY
	if dx*dx+dy*dy < s.sunR*s.sunR {
		return s.sun
	}
	return sky
}

func anyColor(rng *rand.Rand, low, high int) color.RGBA {
	channel := func() uint8 { return uint8(low + rng.IntN(high-low+1)) }
	return color.RGBA{R: channel(), G: channel(), B: channel(), A: 255}
}

// blend returns a for t = 0, and b for t = 1.
func blend(a, b color.RGBA, t float64) color.RGBA {
	mix := func(a, b uint8) uint8 { return uint8(float64(a) + t*(float64(b)-float64(a))) }
	return color.RGBA{R: mix(a.R, b.R), G: mix(a.G, b.G), B: mix(a.B, b.B), A: 255}
}

func shift(v uint8, by int) uint8 { return uint8(min(max(int(v)+by, 0), 255)) }
