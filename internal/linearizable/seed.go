package linearizable

import (
	"fmt"
	"math/rand/v2"
	"os"
	"runtime/debug"
	"strings"
	"testing"
)

// Seed returns the seed in PAWL_SEED, or a random one.
func Seed(t testing.TB) uint64 {
	t.Helper()
	seed := rand.Uint64()
	if s := os.Getenv("PAWL_SEED"); s != "" {
		if _, err := fmt.Sscan(s, &seed); err != nil {
			t.Fatal(err)
		}
	}
	return seed
}

// Repeat returns the command that repeats a test with a seed. The timing may differ.
func Repeat(t testing.TB, seed uint64) string {
	pkg := "."
	if info, ok := debug.ReadBuildInfo(); ok {
		pkg = strings.TrimSuffix(info.Path, ".test")
	}
	return fmt.Sprintf("repeat with: PAWL_SEED=%d go test %s -run '^%s$'", seed, pkg, strings.ReplaceAll(t.Name(), "/", "$/^"))
}
