package config

import (
	"os"
	"path/filepath"
	"testing"
)

// FuzzParse looks for a file that makes the reader panic, or that it accepts
// without a pipeline.
func FuzzParse(f *testing.F) {
	samples, err := filepath.Glob("../../docs/examples/*.yaml")
	if err != nil {
		f.Fatal(err)
	}
	for _, name := range samples {
		b, err := os.ReadFile(name)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b)
	}
	f.Add([]byte("a: &x {b: *x}\nc: *x\n<<: *x\n"))
	f.Add([]byte("pipelines: [{name: ${TOKEN}, match: {bucket: $${X}}, exec: {command: [!!str a, 'b']}}]"))
	f.Add([]byte("? [a]\n: - - - b\n--- |\n  x\n"))
	f.Fuzz(func(t *testing.T, raw []byte) {
		c, err := Parse("pawl.yaml", raw, lookup)
		if err == nil && len(c.Pipelines) == 0 {
			t.Error("accepted without a pipeline")
		}
	})
}
