package demo

import (
	"bytes"
	"fmt"
	"image"
	"image/color"
	"image/jpeg"
	"image/png"
	"maps"
	"slices"
	"strings"

	"github.com/pawlhq/pawl/event"
)

const outputQuality = 85

// Outputs compares all outputs with all inputs.
type Outputs struct {
	Right int      `json:"right"` // equal to the grayscale of their input
	Of    int      `json:"of"`    // inputs
	Wrong []string `json:"wrong,omitempty"`
}

// compare shares no code with the workers.
func compare(inputs, outputs map[string][]byte) Outputs {
	v := Outputs{Of: len(inputs)}
	wrong := func(format string, args ...any) { v.Wrong = append(v.Wrong, fmt.Sprintf(format, args...)) }
	expected := make(map[string]bool, len(inputs))
	for _, key := range slices.Sorted(maps.Keys(inputs)) {
		outKey := outputPrefix + strings.TrimPrefix(key, inputPrefix)
		expected[outKey] = true
		out, ok := outputs[outKey]
		if !ok {
			wrong("%s has no output", object(inputBucket, key))
			continue
		}
		if err := checkGray(inputs[key], out); err != nil {
			wrong("%s is not the grayscale of its input: %v", object(outputBucket, outKey), err)
			continue
		}
		v.Right++
	}
	for _, key := range slices.Sorted(maps.Keys(outputs)) {
		if !expected[key] {
			wrong("%s has no input", object(outputBucket, key))
		}
	}
	return v
}

func object(bucket, key string) string { return event.Object{Bucket: bucket, Key: key}.String() }

func checkGray(in, out []byte) error {
	picture, format, err := image.Decode(bytes.NewReader(in))
	if err != nil {
		return fmt.Errorf("the input cannot be read: %w", err)
	}
	var file bytes.Buffer
	if format == "jpeg" {
		err = jpeg.Encode(&file, gray(picture), &jpeg.Options{Quality: outputQuality})
	} else {
		err = png.Encode(&file, gray(picture))
	}
	if err != nil {
		return err
	}
	want, _, err := image.Decode(&file)
	if err != nil {
		return err
	}
	got, gotFormat, err := image.Decode(bytes.NewReader(out))
	switch {
	case err != nil:
		return fmt.Errorf("it cannot be read: %w", err)
	case gotFormat != format:
		return fmt.Errorf("it is %s, but the input is %s", gotFormat, format)
	case got.Bounds() != want.Bounds():
		return fmt.Errorf("it has %v pixels, but the input has %v", got.Bounds().Size(), want.Bounds().Size())
	}
	return samePixels(got, want)
}

func samePixels(got, want image.Image) error {
	if g, ok := got.(*image.Gray); ok {
		if w, ok := want.(*image.Gray); ok && g.Stride == w.Stride && bytes.Equal(g.Pix, w.Pix) {
			return nil
		}
	}
	b := want.Bounds()
	for y := b.Min.Y; y < b.Max.Y; y++ {
		for x := b.Min.X; x < b.Max.X; x++ {
			g := color.NRGBAModel.Convert(got.At(x, y)).(color.NRGBA)
			w := color.NRGBAModel.Convert(want.At(x, y)).(color.NRGBA)
			if g != w {
				return fmt.Errorf("pixel %d,%d is %v, want %v", x, y, g, w)
			}
		}
	}
	return nil
}

// gray returns the stored luma of a JPEG, otherwise the luma of each pixel.
func gray(m image.Image) *image.Gray {
	b := m.Bounds()
	out := image.NewGray(b)
	j, luma := m.(*image.YCbCr)
	for y := b.Min.Y; y < b.Max.Y; y++ {
		if luma {
			copy(out.Pix[out.PixOffset(b.Min.X, y):][:b.Dx()], j.Y[j.YOffset(b.Min.X, y):])
			continue
		}
		for x := b.Min.X; x < b.Max.X; x++ {
			out.Set(x, y, m.At(x, y))
		}
	}
	return out
}
