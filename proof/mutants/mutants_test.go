package mutants

import (
	"context"
	"encoding/json"
	"flag"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/pawlhq/pawl/proof/servertest"
	"github.com/pawlhq/pawl/proof/sim"
)

var (
	seed      = flag.Uint64("seed", 1, "first seed of the worlds")
	histories = flag.Uint64("histories", 0, "number of worlds per mutant; 0 means until the first violation, at most its budget")
	only      = flag.String("only", "", "names of the mutants to build, or folders such as lock/, separated by commas; empty: all")
	whole     = flag.Bool("whole", false, "run the whole budget of every mutant, and check that each invariant alone kills some mutant")
)

type result struct {
	Mutant
	violated     map[string]uint64 // worlds by invariant
	untaggedTest bool              // killed by a test without an invariant
}

func (r *result) killed() bool { return len(r.violated) > 0 || r.untaggedTest }

type results struct {
	mu  sync.Mutex
	all []result
}

func (r *results) add(one result) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.all = append(r.all, one)
}

// The real protocol runs as many worlds as the largest budget, and violates no invariant.
func TestMutants(t *testing.T) {
	servertest.Long(t)
	var found results
	most := uint64(0)
	for _, m := range chosen(t) {
		most = max(most, m.Budget)
		t.Run(m.Name, func(t *testing.T) {
			t.Parallel()
			r := m.run(t)
			found.add(r)
			if !r.killed() {
				t.Errorf("the mutant survives: %s\nrepeat it with: go test ./proof/mutants -run '%s$' -seed %d", m.Why, t.Name(), *seed)
			}
		})
	}
	t.Run("none", func(t *testing.T) {
		t.Parallel()
		none := Mutant{Name: "none", Budget: most}
		if r := none.run(t); r.killed() {
			t.Errorf("the unchanged protocol violates %v", r.violated)
		}
	})
	if *whole {
		t.Cleanup(func() { found.check(t) })
	}
}

func all(t *testing.T) []Mutant {
	t.Helper()
	list, err := Read(os.DirFS(root(t)))
	if err != nil || len(list) == 0 {
		t.Fatalf("%d mutants, %v", len(list), err)
	}
	return list
}

func chosen(t *testing.T) []Mutant {
	t.Helper()
	if *only == "" {
		return all(t)
	}
	list := all(t)
	var some []Mutant
	for _, name := range strings.Split(*only, ",") {
		if strings.HasSuffix(name, "/") {
			for _, m := range list {
				if strings.HasPrefix(m.File, name) {
					some = append(some, m)
				}
			}
			continue
		}
		i := index(list, name)
		if i < 0 {
			t.Fatalf("-only: unknown mutant %q", name)
		}
		some = append(some, list[i])
	}
	return some
}

// minViolatingWorlds excludes chance.
const minViolatingWorlds = 3

// accidental reports whether a mutant may have been killed by chance.
func (r *result) accidental() bool {
	most := uint64(0)
	for _, n := range r.violated {
		most = max(most, n)
	}
	return r.Test == nil && most < minViolatingWorlds
}

func root(t *testing.T) string {
	t.Helper()
	dir, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

func (m *Mutant) run(t *testing.T) result {
	t.Helper()
	overlay := m.overlay(t)
	if m.Test != nil {
		return m.test(t, overlay)
	}
	bin := filepath.Join(t.TempDir(), "play")
	if out, err := command(t, "go", "build", "-overlay", overlay, "-ldflags=-s -w", "-o", bin, "./proof/mutants/runworlds"); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	n, args := m.Budget, []string{"-first", strconv.FormatUint(*seed, 10)}
	if *histories > 0 {
		n = *histories
	}
	args = append(args, "-histories", strconv.FormatUint(n, 10))
	if *whole || *histories > 0 {
		args = append(args, "-block", strconv.FormatUint(n, 10))
	}
	out, err := command(t, bin, args...)
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	var report struct {
		Histories uint64
		Violated  map[string]uint64
		Failure   struct {
			Seed       uint64
			Violations []struct{ Invariant, What string }
		}
	}
	if err := json.Unmarshal(out, &report); err != nil || report.Histories != n && len(report.Violated) == 0 {
		t.Fatalf("%d histories of %d: %v\n%s", report.Histories, n, err, out)
	}
	t.Logf("%s: %d histories: %v, first %+v", m.Name, report.Histories, report.Violated, report.Failure)
	return result{Mutant: *m, violated: report.Violated}
}

func (m *Mutant) test(t *testing.T, overlay string) result {
	t.Helper()
	args := slices.Concat([]string{"test", "-overlay", overlay, "-vet=off", "-count=1"}, m.Test.Args)
	out, err := command(t, "go", args...)
	r := result{Mutant: *m, violated: map[string]uint64{}}
	if err == nil || !regexp.MustCompile(m.Test.Says).Match(out) {
		t.Logf("go %s: %v\n%s", strings.Join(args, " "), err, out)
		return r
	}
	if r.untaggedTest = m.Test.Invariant == 0; !r.untaggedTest {
		r.violated[m.Test.Invariant.String()] = 1
	}
	return r
}

func (m *Mutant) overlay(t *testing.T) string {
	t.Helper()
	files, err := m.Apply(root(t))
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	replace := map[string]string{}
	for name, text := range files {
		to := filepath.Join(dir, strconv.Itoa(len(replace))+".go")
		if err := os.WriteFile(to, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		replace[filepath.Join(root(t), filepath.FromSlash(name))] = to
	}
	b, err := json.Marshal(map[string]any{"Replace": replace})
	if err != nil {
		t.Fatal(err)
	}
	to := filepath.Join(dir, "overlay.json")
	if err := os.WriteFile(to, b, 0o600); err != nil {
		t.Fatal(err)
	}
	return to
}

func command(t *testing.T, name string, args ...string) ([]byte, error) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Dir = root(t)
	return cmd.CombinedOutput()
}

// check also requires that each invariant alone kills at least one mutant.
func (r *results) check(t *testing.T) {
	t.Helper()
	if len(r.all) < len(all(t)) {
		t.Errorf("-whole needs all mutants: remove -only and -run")
		return
	}
	sole := map[string]bool{}
	for _, one := range r.all {
		if one.killed() && one.accidental() {
			t.Errorf("%s: only %v in %d worlds: increase its Budget", one.Name, one.violated, one.Budget)
		}
		if len(one.violated) == 1 {
			for name := range one.violated {
				sole[name] = true
			}
		}
	}
	for i := sim.I1; i <= sim.I14; i++ {
		if !sole[i.String()] {
			t.Errorf("%s (%s): no mutant is killed by it alone", i, i.Description())
		}
	}
}

func index(all []Mutant, name string) int {
	return slices.IndexFunc(all, func(m Mutant) bool { return m.Name == name })
}
