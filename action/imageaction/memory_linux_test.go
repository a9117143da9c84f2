//go:build !race

package imageaction

import (
	"bytes"
	"context"
	"fmt"
	"image"
	"math/rand/v2"
	"os"
	"os/exec"
	"strings"
	"testing"
)

// The test program converts standard input if convertEnv is set.
const convertEnv = "PAWL_TEST_CONVERT"

func TestMain(m *testing.M) {
	if format := os.Getenv(convertEnv); format != "" {
		printMemory(format)
		return
	}
	os.Exit(m.Run())
}

// https://man7.org/linux/man-pages/man5/proc_pid_status.5.html
func printMemory(format string) {
	if _, _, err := Convert(context.Background(), os.Stdin, Config{Format: format}); err != nil {
		fmt.Println(err)
		return
	}
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		fmt.Println(err)
		return
	}
	_, rest, _ := strings.Cut(string(status), "VmHWM:")
	rest, _, _ = strings.Cut(rest, "kB")
	fmt.Println(strings.TrimSpace(rest))
}

// The limit is in docs/ACTIONS.md. Noise with a noisy alpha channel needs the most memory.
func TestMemoryOfWebP(t *testing.T) {
	noise := image.NewNRGBA(image.Rect(0, 0, 2000, 1000))
	rnd := rand.New(rand.NewPCG(1, 2))
	for i := range noise.Pix {
		noise.Pix[i] = uint8(rnd.IntN(256))
	}
	for name, tt := range map[string]struct {
		in     []byte
		pixels int
	}{
		"twelve megapixels": {encodeJPEG(t, photo(benchW, benchH)), benchW * benchH},
		"noise":             {encodePNG(t, noise), 2000 * 1000},
	} {
		t.Run(name, func(t *testing.T) {
			cmd := exec.CommandContext(t.Context(), os.Args[0])
			cmd.Env = append(os.Environ(), convertEnv+"="+formatWebP)
			cmd.Stdin = bytes.NewReader(tt.in)
			out, err := cmd.CombinedOutput()
			if err != nil {
				t.Fatalf("%v\n%s", err, out)
			}
			var kib int
			if _, err := fmt.Sscan(string(out), &kib); err != nil {
				t.Fatalf("%v\n%s", err, out)
			}
			const program = 40 << 20 // the process and libwebp's code
			limit := program + 28*tt.pixels + len(tt.in)
			t.Logf("%d MB of at most %d MB", kib<<10/1e6, limit/1e6)
			if kib<<10 > limit {
				t.Errorf("%d bytes of memory, want at most %d", kib<<10, limit)
			}
		})
	}
}
