package demo

import (
	"bytes"
	"image"
	"image/color"
	"image/jpeg"
	"image/png"
	"maps"
	"strings"
	"testing"

	"github.com/pawlhq/pawl/action/imageaction"
)

func sampleOutputs(t *testing.T) (inputs, outputs map[string][]byte) {
	t.Helper()
	inputs, outputs = map[string][]byte{}, map[string][]byte{}
	for name, p := range map[string]*picture{
		"a b.jpg":  {seed: 1, width: 64, height: 48, format: "jpeg"},
		"in/c.png": {seed: 2, width: 48, height: 64, format: "png"},
	} {
		file, err := p.file()
		if err != nil {
			t.Fatal(err)
		}
		out, _, err := imageaction.Convert(t.Context(), bytes.NewReader(file), imageaction.Config{Grayscale: true})
		if err != nil {
			t.Fatal(err)
		}
		inputs[inputPrefix+name], outputs[outputPrefix+name] = file, out
	}
	return inputs, outputs
}

func TestCompare(t *testing.T) {
	inputs, outputs := sampleOutputs(t)
	if v := compare(inputs, outputs); v.Right != 2 || v.Of != 2 || len(v.Wrong) != 0 {
		t.Errorf("right outputs: got %+v", v)
	}
	const jpg, pic = outputPrefix + "a b.jpg", outputPrefix + "in/c.png"
	for _, c := range []struct {
		name  string
		spoil func(out map[string][]byte)
		want  string
	}{
		{"missing", func(out map[string][]byte) { delete(out, jpg) }, "has no output"},
		{"left over", func(out map[string][]byte) { out[outputPrefix+"gone.jpg"] = nil }, `gone.jpg has no input`},
		{"elsewhere", func(out map[string][]byte) { out["other"] = nil }, "other has no input"},
		{"empty", func(out map[string][]byte) { out[jpg] = nil }, "cannot be read"},
		{"not converted", func(out map[string][]byte) { out[pic] = inputs[inputPrefix+"in/c.png"] }, "pixel 0,0 is"},
		{"of another input", func(out map[string][]byte) { out[pic] = out[jpg] }, "it is jpeg, but the input is png"},
		{"one pixel off", func(out map[string][]byte) { out[pic] = tweak(t, out[pic], 1) }, "pixel 5,7 is"},
		{"JPEG, a little off", func(out map[string][]byte) { out[jpg] = tweak(t, out[jpg], 60) }, "pixel "},
		{"another size", func(out map[string][]byte) { out[pic] = crop(t, out[pic]) }, "it has (10,10) pixels"},
	} {
		out := maps.Clone(outputs)
		c.spoil(out)
		v := compare(inputs, out)
		if len(v.Wrong) != 1 || !strings.Contains(v.Wrong[0], c.want) {
			t.Errorf("%s: got %q, want %q", c.name, v.Wrong, c.want)
		}
		if (&PipelineReport{Outputs: v}).err() == nil {
			t.Errorf("%s: the report is not an error", c.name)
		}
	}
}

func tweak(t *testing.T, file []byte, by uint8) []byte {
	t.Helper()
	img, format, err := image.Decode(bytes.NewReader(file))
	if err != nil {
		t.Fatal(err)
	}
	m := img.(*image.Gray)
	m.SetGray(5, 7, color.Gray{Y: m.GrayAt(5, 7).Y + by})
	return encode(t, m, format)
}

func crop(t *testing.T, file []byte) []byte {
	t.Helper()
	img, format, err := image.Decode(bytes.NewReader(file))
	if err != nil {
		t.Fatal(err)
	}
	return encode(t, img.(*image.Gray).SubImage(image.Rect(0, 0, 10, 10)), format)
}

func encode(t *testing.T, m image.Image, format string) []byte {
	t.Helper()
	var out bytes.Buffer
	err := png.Encode(&out, m)
	if format == "jpeg" {
		out.Reset()
		err = jpeg.Encode(&out, m, &jpeg.Options{Quality: outputQuality})
	}
	if err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}
