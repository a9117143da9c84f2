package libwebp

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"image"
	"math/rand/v2"
	"os"
	"strings"
	"sync"
	"testing"

	"golang.org/x/image/webp"
)

func noise(translucent bool) func(*image.NYCbCrA) {
	return func(m *image.NYCbCrA) {
		rnd := rand.New(rand.NewPCG(1, 2))
		for _, plane := range [][]uint8{m.Y, m.Cb, m.Cr} {
			for i := range plane {
				plane[i] = uint8(16 + rnd.IntN(220))
			}
		}
		for i := range m.A {
			m.A[i] = 255
			if translucent {
				m.A[i] = uint8(rnd.IntN(256))
			}
		}
	}
}

func TestNoiseFitsIntoMemory(t *testing.T) {
	for _, size := range []image.Point{{1, 1}, {33, 17}, {600, 500}, {MaxSide, 3}, {3, MaxSide}} {
		for _, translucent := range []bool{false, true} {
			file, err := Encode(t.Context(), size.X, size.Y, 100, noise(translucent))
			if err != nil {
				t.Errorf("%v, translucent %v: %v", size, translucent, err)
				continue
			}
			img, err := webp.Decode(bytes.NewReader(file))
			if err != nil || img.Bounds().Max != size {
				t.Errorf("%v, translucent %v: decoded to %v, error %v", size, translucent, img.Bounds(), err)
			}
		}
	}
}

func TestCallsRunInParallel(t *testing.T) {
	want, err := Encode(t.Context(), 200, 100, 75, noise(true))
	if err != nil {
		t.Fatal(err)
	}
	const calls = 4
	var inside, done sync.WaitGroup
	inside.Add(calls)
	for range calls {
		done.Go(func() {
			got, err := Encode(t.Context(), 200, 100, 75, func(m *image.NYCbCrA) {
				inside.Done()
				inside.Wait() // all calls have an instance
				noise(true)(m)
			})
			if err != nil || !bytes.Equal(got, want) {
				t.Errorf("result differs from that of a single call, error %v", err)
			}
		})
	}
	done.Wait()
}

func TestCancelledCallDoesNotEncode(t *testing.T) {
	lost := errors.New("lease lost")
	ctx, cancel := context.WithCancelCause(t.Context())
	_, err := Encode(ctx, 10, 10, 75, func(*image.NYCbCrA) { cancel(lost) })
	if !errors.Is(err, lost) {
		t.Errorf("error %v, want %v", err, lost)
	}
}

func TestSidesAreChecked(t *testing.T) {
	for _, size := range []image.Point{{0, 1}, {1, 0}, {MaxSide + 1, 1}, {1, MaxSide + 1}, {-1, 1}} {
		if _, err := Encode(t.Context(), size.X, size.Y, 75, noise(false)); err == nil || !strings.Contains(err.Error(), "want sides of 1 to 16383") {
			t.Errorf("%v: error %v", size, err)
		}
	}
}

func TestResultIsTheSameOnEveryMachine(t *testing.T) {
	file, err := Encode(t.Context(), 120, 90, 75, noise(true))
	if err != nil {
		t.Fatal(err)
	}
	const want = "7f226a9e7853d528fc717aa84138e24dc21bfff365ff3debf7dfda21d97360ec"
	if got := digest(file); got != want {
		t.Errorf("digest %s, want %s", got, want)
	}
}

func TestReadmeNamesTheCompiledFile(t *testing.T) {
	readme, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	if sum := digest(compressed); !strings.Contains(string(readme), sum) {
		t.Errorf("README.md does not have the SHA-256 %s of webp.wasm.gz", sum)
	}
}

func digest(b []byte) string {
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:])
}
