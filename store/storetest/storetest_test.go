package storetest_test

import (
	"context"
	"iter"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/pawlhq/pawl/store"
	"github.com/pawlhq/pawl/store/memory"
	"github.com/pawlhq/pawl/store/storetest"
)

type driver struct {
	*memory.Store
	traits func(store.Traits) store.Traits
	swap   writing
	apply  writing
	load   func(context.Context, *memory.Store, []store.Key) ([]store.Record, error)
	due    func(context.Context, *memory.Store, store.DueRange) ([]store.Record, error)
	scan   func(context.Context, *memory.Store, store.Range) iter.Seq2[store.Record, error]
}

type writing func(context.Context, *memory.Store, []store.Change) ([]store.Outcome, error)

func (d *driver) Traits() store.Traits {
	if d.traits != nil {
		return d.traits(d.Store.Traits())
	}
	return d.Store.Traits()
}

func (d *driver) Swap(ctx context.Context, changes []store.Change) ([]store.Outcome, error) {
	if d.swap != nil {
		return d.swap(ctx, d.Store, changes)
	}
	return d.Store.Swap(ctx, changes)
}

func (d *driver) Apply(ctx context.Context, changes []store.Change) ([]store.Outcome, error) {
	if d.apply != nil {
		return d.apply(ctx, d.Store, changes)
	}
	return d.Store.Apply(ctx, changes)
}

func (d *driver) Load(ctx context.Context, keys []store.Key) ([]store.Record, error) {
	if d.load != nil {
		return d.load(ctx, d.Store, keys)
	}
	return d.Store.Load(ctx, keys)
}

func (d *driver) Due(ctx context.Context, r store.DueRange) ([]store.Record, error) {
	if d.due != nil {
		return d.due(ctx, d.Store, r)
	}
	return d.Store.Due(ctx, r)
}

func (d *driver) Scan(ctx context.Context, r store.Range) iter.Seq2[store.Record, error] {
	if d.scan != nil {
		return d.scan(ctx, d.Store, r)
	}
	return d.Store.Scan(ctx, r)
}

const mutantEnv = "STORETEST_MUTANT"

func TestMutants(t *testing.T) {
	if name := os.Getenv(mutantEnv); name != "" {
		m := mutants[name]
		storetest.Run(t, storetest.Harness{
			Within: m.within,
			New: func(*testing.T) storetest.Open {
				return func() (store.Store, error) {
					d := m.driver()
					d.Store = memory.New()
					return d, nil
				}
			},
		})
		return
	}
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	for name, m := range mutants {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cmd := exec.CommandContext(t.Context(), exe, "-test.run=^TestMutants$/^"+m.caughtBy+"$", "-rapid.nofailfile")
			cmd.Env = append(os.Environ(), mutantEnv+"="+name)
			out, err := cmd.CombinedOutput()
			if err == nil || !strings.Contains(string(out), "--- FAIL: TestMutants/"+m.caughtBy+"/") {
				t.Errorf("%s does not catch it: %v\n%s", m.caughtBy, err, out)
			}
		})
	}
}

type mutant struct {
	caughtBy string
	driver   func() *driver
	within   func(context.Context, store.Store, func(store.Tx) error) error
}

func swapping(f writing) func() *driver { return func() *driver { return &driver{swap: f} } }
func applying(f writing) func() *driver { return func() *driver { return &driver{apply: f} } }

func declaring(edit func(*store.Traits)) func() *driver {
	return func() *driver {
		return &driver{traits: func(t store.Traits) store.Traits { edit(&t); return t }}
	}
}

var mutants = map[string]mutant{
	"ignores the nonce":         {caughtBy: "Swap", driver: swapping(ignoreNonce)},
	"refuses without a record":  {caughtBy: "Swap", driver: swapping(refuseBlindly)},
	"all or nothing":            {caughtBy: "Swap", driver: swapping(allOrNothing)},
	"takes less than declared":  {caughtBy: "Swap", driver: swapping(takeFew)},
	"keeps the caller's record": {caughtBy: "Swap", driver: keepRecords},
	"half answers":              {caughtBy: "Swap", driver: swapping(answerHalf)},
	"repeats after a success":   {caughtBy: "Swap", driver: swapping(swapTwice)},

	"applies each alone":     {caughtBy: "Apply", driver: applying(swapAll)},
	"applies too many":       {caughtBy: "Apply", driver: applying(applyInParts)},
	"refuses without reason": {caughtBy: "Apply", driver: applying(applySilently)},
	"compares, then applies": {caughtBy: "Race", driver: applying(readThenApply)},

	"ignores case":            {caughtBy: "Names", driver: renaming(strings.ToLower)},
	"trims spaces":            {caughtBy: "Names", driver: renaming(func(s string) string { return strings.TrimRight(s, " ") })},
	"ends names at NUL":       {caughtBy: "Names", driver: renaming(func(s string) string { n, _, _ := strings.Cut(s, "\x00"); return n })},
	"replaces invalid UTF-8":  {caughtBy: "Names", driver: renaming(func(s string) string { return strings.ToValidUTF8(s, "\uFFFD") })},
	"cuts off at 1,000 bytes": {caughtBy: "Names", driver: renaming(func(s string) string { return s[:min(len(s), 1000)] })},
	"trims bodies":            {caughtBy: "Bodies", driver: rewriting(func(r *store.Record) { r.Body = strings.TrimSpace(r.Body) })},
	"cuts bodies off":         {caughtBy: "Bodies", driver: rewriting(func(r *store.Record) { r.Body = r.Body[:min(len(r.Body), 200_000)] })},
	"accepts any body":        {caughtBy: "Bodies", driver: rewriting(func(r *store.Record) { r.Body = strings.ToValidUTF8(r.Body, "?") })},

	"due only after": {caughtBy: "Due", driver: dueing(func(r *store.DueRange) { r.Before = r.Before.Add(-time.Millisecond) })},
	"due pages by time": {caughtBy: "Due", driver: dueing(func(r *store.DueRange) {
		if r.After.Name != "" {
			r.After = store.Place{Due: r.After.Due, Name: "\xff\xff\xff\xff\xff"}
		}
	})},
	"due without a limit": {caughtBy: "Due", driver: dueing(func(r *store.DueRange) { r.Limit = 1 << 30 })},
	"due in short pages":  {caughtBy: "Due", driver: dueing(func(r *store.DueRange) { r.Limit = min(r.Limit, 64) })},
	"due by name":         {caughtBy: "Due", driver: func() *driver { return &driver{due: dueByName} }},
	"due to the second":   {caughtBy: "Due", driver: rewriting(func(r *store.Record) { r.Due = r.Due.Truncate(time.Second) })},

	"scans After again": {caughtBy: "Scan", driver: scanning(func(r *store.Range) { r.After = strings.TrimSuffix(r.After, "\x00") })},
	"scans to Before": {caughtBy: "Scan", driver: scanning(func(r *store.Range) {
		if r.Before != "" {
			r.Before += "\x00"
		}
	})},
	"scans a page only":     {caughtBy: "Scan", driver: scanning(func(r *store.Range) { r.Limit = 1000 })},
	"scans without a limit": {caughtBy: "Scan", driver: scanning(func(r *store.Range) { r.Limit = 0 })},
	"scans upwards":         {caughtBy: "Model", driver: scanning(func(r *store.Range) { r.Newest = false })},
	"scans twice":           {caughtBy: "Model", driver: func() *driver { return &driver{scan: scanTwice} }},

	"reads, then writes":      {caughtBy: "Race", driver: swapping(readThenWrite)},
	"compares, then writes":   {caughtBy: "Linear", driver: swapping(readThenWrite)},
	"loads old records":       {caughtBy: "Linear", driver: loadOld},
	"compares with the past":  {caughtBy: "Linear", driver: compareOld},
	"loses what it applied":   {caughtBy: "Linear", driver: swapping(sometimes(loseApplied))},
	"applies what it refused": {caughtBy: "Linear", driver: swapping(sometimes(applyRefused))},
	"tears Applys":            {caughtBy: "Linear", driver: applying(sometimes(loseApplied))},

	"ignores the context": {caughtBy: "Cancel", driver: swapping(func(ctx context.Context, s *memory.Store, c []store.Change) ([]store.Outcome, error) {
		return s.Swap(context.WithoutCancel(ctx), c)
	})},
	"applies for no caller": {caughtBy: "Cancel", driver: applying(func(ctx context.Context, s *memory.Store, c []store.Change) ([]store.Outcome, error) {
		return s.Apply(context.WithoutCancel(ctx), c)
	})},
	"forgets":                   {caughtBy: "Durable", driver: declaring(func(t *store.Traits) { t.Volatile = false })},
	"declares transactions":     {caughtBy: "Tx", driver: declaring(func(t *store.Traits) { t.Transactions = true })},
	"commits without a lock":    {caughtBy: "Tx", driver: withTx, within: (&txs{blind: true}).within},
	"writes before the commit":  {caughtBy: "Tx", driver: withTx, within: (&txs{eager: true}).within},
	"declares changing limits":  {caughtBy: "Traits", driver: changeTraits},
	"declares an endless limit": {caughtBy: "Traits", driver: declaring(func(t *store.Traits) { t.Body = 1 << 40 })},
}

func TestTraits(t *testing.T) {
	for name, driver := range map[string]func() *driver{
		"small batches": few(7, 2),
		"no Apply":      few(7, 0),
		"transactions":  withTx,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := storetest.Harness{New: func(*testing.T) storetest.Open {
				d := driver()
				d.Store = memory.New()
				return func() (store.Store, error) { return d, nil }
			}}
			if name == "transactions" {
				h.Within = new(txs).within
			}
			storetest.Run(t, h)
		})
	}
}

func TestFaultNames(t *testing.T) {
	var names []string
	for _, f := range storetest.Faults {
		names = append(names, f.String())
	}
	if got := strings.Join(names, " "); got != "none lost unsent torn late later half throttled" {
		t.Error(got)
	}
}
