package ledgertest_test

import (
	"context"
	"errors"
	"iter"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/pawlhq/pawl/ledger"
	"github.com/pawlhq/pawl/ledger/ledgertest"
	"github.com/pawlhq/pawl/ledger/memledger"
)

// mutantEnv names the mutant that a child process is to run the suite on.
const mutantEnv = "LEDGERTEST_MUTANT"

// A suite is worth what it catches: each of these stores is wrong in one way,
// and fails the part of the suite that is named.
func TestMutants(t *testing.T) {
	if name := os.Getenv(mutantEnv); name != "" {
		h := ledgertest.Harness{
			Durable: name == "forgets", Registers: true, Pass: pass,
			New: func(*testing.T) ledgertest.Open {
				return func() (ledger.Store, error) { return mutants[name].make(memledger.New()), nil }
			},
		}
		if name == "completes without a lock" {
			h.Complete = completeBlindly
		}
		ledgertest.Run(t, h)
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

var mutants = map[string]struct {
	caughtBy string
	make     func(*memledger.Store) ledger.Store
}{
	"ignores the nonce":       {"Swap", swapping(ignoreNonce)},
	"refuses without a row":   {"Swap", swapping(refuseBlindly)},
	"all or nothing":          {"Batch", swapping(allOrNothing)},
	"reads and then writes":   {"Race", swapping(readThenWrite)},
	"compares, then writes":   {"Linear", swapping(readThenWrite)},
	"loads old rows":          {"Linear", func(s *memledger.Store) ledger.Store { return &oldRows{Store: s} }},
	"compares with old rows":  {"Linear", func(s *memledger.Store) ledger.Store { return &oldNonces{oldRows{Store: s}} }},
	"loses what it applied":   {"Linear", sometimes(loseApplied)},
	"applies what it refused": {"Linear", sometimes(applyRefused)},
	"ignores the context":     {"Cancel", swapping(ignoreContext)},
	"ignores case":            {"Keys", renaming(strings.ToLower)},
	"trims spaces":            {"Keys", renaming(func(s string) string { return strings.TrimRight(s, " ") })},
	"ends keys at NUL":        {"Keys", renaming(func(s string) string { k, _, _ := strings.Cut(s, "\x00"); return k })},
	"replaces invalid UTF-8":  {"Keys", renaming(func(s string) string { return strings.ToValidUTF8(s, "\uFFFD") })},
	"cuts off at 1,000 bytes": {"Keys", renaming(func(s string) string { return s[:min(len(s), 1000)] })},
	"rounds to milliseconds":  {"RoundTrip", writing(func(r *ledger.Row) { r.VerifyAt = r.VerifyAt.Truncate(time.Millisecond) })},
	"stores local times":      {"RoundTrip", writing(func(r *ledger.Row) { r.VerifyAt = r.VerifyAt.In(time.FixedZone("", 3600)) })},
	"forgets a field":         {"RoundTrip", writing(func(r *ledger.Row) { r.Have.Identity.Meta = "" })},
	"keeps the history":       {"Own", func(s *memledger.Store) ledger.Store { return sharing{s, map[ledger.RowKey][]ledger.Entry{}} }},
	"due only after": {"Due", dueing(func(ctx context.Context, s *memledger.Store, p string, at time.Time, n int) ([]ledger.Row, error) {
		return s.Due(ctx, p, at.Add(-1), n)
	})},
	"due by key": {"Due", dueing(dueByKey)},
	"due without a limit": {"Due", dueing(func(ctx context.Context, s *memledger.Store, p string, at time.Time, _ int) ([]ledger.Row, error) {
		return s.Due(ctx, p, at, 1<<30)
	})},
	"due of all pipelines":                {"Due", dueing(dueOfAll)},
	"scans After again":                   {"Scan", scanning(scanInclusive)},
	"scans a page only":                   {"Scan", scanning(scanOnePage)},
	"scans to the next byte":              {"Scan", scanning(scanToNextByte)},
	"yields after the end":                {"Model", scanning(scanTwice)},
	"undeclared half answers":             {"Swap", halfAnswering(ledger.Traits{})},
	"undeclared lag of Due":               {"Due", lagging(time.Minute, ledger.Traits{})},
	"a lag of Due beyond its declaration": {"Due", lagging(time.Hour, ledger.Traits{DueLag: time.Minute})},
	"undeclared order of Due":             {"Due", shuffling(ledger.Traits{ScanUnordered: true})},
	"undeclared order of Scan":            {"Scan", shuffling(ledger.Traits{DueUnordered: true})},
	"due twice, in no order":              {"Due", dueing(dueTwice)},
	"names no pipelines": {"Traits", func(s *memledger.Store) ledger.Store {
		return declaring{s, ledger.Traits{Volatile: true, ScanUnordered: true}}
	}},
	"takes less than declared":    {"Batch", swapping(takeFew)},
	"writes over newer registers": {"Registers", func(s *memledger.Store) ledger.Store { return overwriting{s} }},
	"completes without a lock": {"Complete", func(s *memledger.Store) ledger.Store {
		return declaring{s, ledger.Traits{Volatile: true, Transactions: true}}
	}},
	"declares transactions": {"Complete", func(s *memledger.Store) ledger.Store {
		return declaring{s, ledger.Traits{Volatile: true, Transactions: true}}
	}},
	"keeps a register's version": {"Registers", func(s *memledger.Store) ledger.Store { return fixedVersion{s} }},
	"forgets":                    {"Durable", func(s *memledger.Store) ledger.Store { return s }},
}

// completeBlindly overwrites the changes that others make after it has read the row.
func completeBlindly(ctx context.Context, s ledger.Store, c *ledger.Completion) error {
	read, err := s.Load(ctx, []ledger.RowKey{c.Claim.Key})
	if err != nil {
		return err
	}
	next, err := c.Over(&read[0])
	if err != nil {
		return err
	}
	runtime.Gosched()
	for {
		now, err := s.Load(ctx, []ledger.RowKey{c.Claim.Key})
		if err != nil {
			return err
		}
		out, err := s.Swap(ctx, []ledger.Change{{Key: next.RowKey, Expect: now[0].Nonce, Row: &next}})
		if err != nil || out[0].Applied {
			return err
		}
	}
}

func dueTwice(ctx context.Context, s *memledger.Store, pipeline string, before time.Time, limit int) ([]ledger.Row, error) {
	rows, err := s.Due(ctx, pipeline, before, limit)
	if len(rows) > 1 {
		rows[1] = rows[0]
	}
	return rows, err
}

func takeFew(ctx context.Context, s *memledger.Store, changes []ledger.Change) ([]ledger.Outcome, error) {
	if len(changes) == ledger.DefaultBatch {
		return nil, errors.New("too many changes")
	}
	return s.Swap(ctx, changes)
}

// overwriting writes a register without a look at its version.
type overwriting struct{ *memledger.Store }

func (s overwriting) WriteRegister(ctx context.Context, name, _ string, value []byte) (string, error) {
	now, err := s.ReadRegister(ctx, name)
	if err != nil {
		return "", err
	}
	return s.Store.WriteRegister(ctx, name, now.Version, value)
}

// fixedVersion takes the value for the version: what comes back passes for what
// it was before.
type fixedVersion struct{ *memledger.Store }

func (s fixedVersion) WriteRegister(ctx context.Context, name, version string, value []byte) (string, error) {
	now, err := s.ReadRegister(ctx, name)
	switch {
	case err != nil:
		return "", err
	case now.Version != version:
		return "", ledger.ErrRegisterChanged
	}
	if _, err := s.Store.WriteRegister(ctx, name, s.inner(ctx, name), value); err != nil {
		return "", err
	}
	return "of " + string(value), nil
}

func (s fixedVersion) inner(ctx context.Context, name string) string {
	r, _ := s.Store.ReadRegister(ctx, name)
	return r.Version
}

func (s fixedVersion) ReadRegister(ctx context.Context, name string) (ledger.Register, error) {
	r, err := s.Store.ReadRegister(ctx, name)
	if r.Version != "" {
		r.Version = "of " + string(r.Value)
	}
	return r, err
}

type swapFunc func(context.Context, *memledger.Store, []ledger.Change) ([]ledger.Outcome, error)

type swapper struct {
	*memledger.Store
	swap swapFunc
}

func (s swapper) Swap(ctx context.Context, changes []ledger.Change) ([]ledger.Outcome, error) {
	return s.swap(ctx, s.Store, changes)
}

func swapping(f swapFunc) func(*memledger.Store) ledger.Store {
	return func(s *memledger.Store) ledger.Store { return swapper{s, f} }
}

func ignoreNonce(ctx context.Context, s *memledger.Store, changes []ledger.Change) ([]ledger.Outcome, error) {
	out := make([]ledger.Outcome, len(changes))
	for i, c := range changes {
		rows, err := s.Load(ctx, []ledger.RowKey{c.Key})
		if err != nil {
			return nil, err
		}
		if len(rows) > 0 && !c.Expect.IsZero() {
			c.Expect = rows[0].Nonce
		}
		one, err := s.Swap(ctx, []ledger.Change{c})
		if err != nil {
			return nil, err
		}
		out[i] = one[0]
	}
	return out, nil
}

func refuseBlindly(ctx context.Context, s *memledger.Store, changes []ledger.Change) ([]ledger.Outcome, error) {
	out, err := s.Swap(ctx, changes)
	for i := range out {
		out[i].Current = nil
	}
	return out, err
}

// judge says of each change, by the rows before the batch, whether it fits.
func judge(ctx context.Context, s *memledger.Store, changes []ledger.Change) []bool {
	fits := make([]bool, len(changes))
	for i, c := range changes {
		rows, err := s.Load(ctx, []ledger.RowKey{c.Key})
		fits[i] = err == nil && (len(rows) == 0 && c.Expect.IsZero() || len(rows) > 0 && rows[0].Nonce == c.Expect)
	}
	return fits
}

func allOrNothing(ctx context.Context, s *memledger.Store, changes []ledger.Change) ([]ledger.Outcome, error) {
	if slices.Contains(judge(ctx, s, changes), false) {
		return make([]ledger.Outcome, len(changes)), nil
	}
	return s.Swap(ctx, changes)
}

func readThenWrite(ctx context.Context, s *memledger.Store, changes []ledger.Change) ([]ledger.Outcome, error) {
	fits := judge(ctx, s, changes)
	if slices.Contains(fits, false) {
		return s.Swap(ctx, changes)
	}
	for range 100 {
		runtime.Gosched() // another may do the same meanwhile
	}
	return ignoreNonce(ctx, s, changes)
}

func ignoreContext(ctx context.Context, s *memledger.Store, changes []ledger.Change) ([]ledger.Outcome, error) {
	return s.Swap(context.WithoutCancel(ctx), changes)
}

// renaming makes a store that mixes up the keys which f maps to one.
func renaming(f func(string) string) func(*memledger.Store) ledger.Store {
	return func(s *memledger.Store) ledger.Store { return renamer{s, f} }
}

type renamer struct {
	*memledger.Store
	rename func(string) string
}

func (s renamer) Swap(ctx context.Context, changes []ledger.Change) ([]ledger.Outcome, error) {
	changes = slices.Clone(changes)
	for i := range changes {
		changes[i].Key.Key = s.rename(changes[i].Key.Key)
	}
	return s.Store.Swap(ctx, changes)
}

func (s renamer) Load(ctx context.Context, keys []ledger.RowKey) ([]ledger.Row, error) {
	keys = slices.Clone(keys)
	for i := range keys {
		keys[i].Key = s.rename(keys[i].Key)
	}
	return s.Store.Load(ctx, keys)
}

// writing makes a store that changes what it is given.
func writing(f func(*ledger.Row)) func(*memledger.Store) ledger.Store {
	return swapping(func(ctx context.Context, s *memledger.Store, changes []ledger.Change) ([]ledger.Outcome, error) {
		changes = slices.Clone(changes)
		for i := range changes {
			if changes[i].Row != nil {
				r := *changes[i].Row
				f(&r)
				changes[i].Row = &r
			}
		}
		return s.Swap(ctx, changes)
	})
}

// sharing keeps the caller's slice of the history.
type sharing struct {
	*memledger.Store
	kept map[ledger.RowKey][]ledger.Entry
}

func (s sharing) Swap(ctx context.Context, changes []ledger.Change) ([]ledger.Outcome, error) {
	for _, c := range changes {
		if c.Row != nil {
			s.kept[c.Key] = c.Row.History
		}
	}
	return s.Store.Swap(ctx, changes)
}

func (s sharing) Load(ctx context.Context, keys []ledger.RowKey) ([]ledger.Row, error) {
	rows, err := s.Store.Load(ctx, keys)
	for i := range rows {
		rows[i].History = s.kept[rows[i].RowKey]
	}
	return rows, err
}

type dueFunc func(context.Context, *memledger.Store, string, time.Time, int) ([]ledger.Row, error)

type dueer struct {
	*memledger.Store
	due dueFunc
}

func (s dueer) Due(ctx context.Context, pipeline string, before time.Time, limit int) ([]ledger.Row, error) {
	return s.due(ctx, s.Store, pipeline, before, limit)
}

func dueing(f dueFunc) func(*memledger.Store) ledger.Store {
	return func(s *memledger.Store) ledger.Store { return dueer{s, f} }
}

func dueByKey(ctx context.Context, s *memledger.Store, pipeline string, before time.Time, limit int) ([]ledger.Row, error) {
	rows, err := s.Due(ctx, pipeline, before, 1<<30)
	slices.SortFunc(rows, func(a, b ledger.Row) int { return a.Compare(b.RowKey) })
	return rows[:min(limit, len(rows))], err
}

func dueOfAll(ctx context.Context, s *memledger.Store, _ string, before time.Time, limit int) (rows []ledger.Row, err error) {
	for r, err := range s.Scan(ctx, ledger.Range{}) {
		if err != nil {
			return nil, err
		}
		if due := r.Due(); !due.IsZero() && !due.After(before) {
			rows = append(rows, r)
		}
	}
	slices.SortFunc(rows, func(a, b ledger.Row) int { return a.Due().Compare(b.Due()) })
	return rows[:min(limit, len(rows))], nil
}

type scanFunc func(context.Context, *memledger.Store, ledger.Range) iter.Seq2[ledger.Row, error]

type scanner struct {
	*memledger.Store
	scan scanFunc
}

func (s scanner) Scan(ctx context.Context, r ledger.Range) iter.Seq2[ledger.Row, error] {
	return s.scan(ctx, s.Store, r)
}

func scanning(f scanFunc) func(*memledger.Store) ledger.Store {
	return func(s *memledger.Store) ledger.Store { return scanner{s, f} }
}

// filter scans everything and yields what keep approves of.
func filter(ctx context.Context, s *memledger.Store, keep func(n int, k ledger.RowKey) bool) iter.Seq2[ledger.Row, error] {
	return func(yield func(ledger.Row, error) bool) {
		n := 0
		for r, err := range s.Scan(ctx, ledger.Range{}) {
			if err != nil {
				yield(r, err)
				return
			}
			if !keep(n, r.RowKey) {
				continue
			}
			if n++; !yield(r, nil) {
				return
			}
		}
	}
}

func scanInclusive(ctx context.Context, s *memledger.Store, r ledger.Range) iter.Seq2[ledger.Row, error] {
	return filter(ctx, s, func(_ int, k ledger.RowKey) bool { return r.Match(k) || k == r.After })
}

func scanOnePage(ctx context.Context, s *memledger.Store, r ledger.Range) iter.Seq2[ledger.Row, error] {
	return filter(ctx, s, func(n int, k ledger.RowKey) bool { return r.Match(k) && n < 1000 })
}

// scanToNextByte takes the prefix with its last byte raised for the upper bound,
// which overflows at 0xff.
func scanToNextByte(ctx context.Context, s *memledger.Store, r ledger.Range) iter.Seq2[ledger.Row, error] {
	return filter(ctx, s, func(_ int, k ledger.RowKey) bool {
		if p := []byte(r.Prefix); len(p) > 0 {
			p[len(p)-1]++
			return r.Match(k) && k.Key < string(p)
		}
		return r.Match(k)
	})
}

func scanTwice(ctx context.Context, s *memledger.Store, r ledger.Range) iter.Seq2[ledger.Row, error] {
	return func(yield func(ledger.Row, error) bool) {
		var last *ledger.Row
		for row, err := range s.Scan(ctx, r) {
			if last = &row; !yield(row, err) {
				return
			}
		}
		if last != nil {
			yield(*last, nil)
		}
	}
}

// The names of faults are what a failing test has to say for itself.
func TestFaultNames(t *testing.T) {
	var names []string
	for _, f := range ledgertest.Faults {
		names = append(names, f.String())
	}
	if got := strings.Join(names, " "); got != "none lost unsent torn late later half" {
		t.Error(got)
	}
}
