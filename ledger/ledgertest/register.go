package ledgertest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/pawlhq/pawl/internal/registertest"
	"github.com/pawlhq/pawl/ledger"
)

var registerTests = []test{
	{name: "Declared", run: testRegistersDeclared},
	{name: "Write", run: testRegisterWrite, needs: registers},
	{name: "Values", run: testRegisterValues, needs: registers},
	{name: "Refused", run: testRegisterRefused, needs: registers},
	{name: "Remove", run: testRegisterRemove, needs: registers},
	{name: "List", run: testRegisterList, needs: registers},
	{name: "Own", run: testRegisterOwn, needs: registers},
	{name: "Linear", run: testRegisterLinear, needs: registers},
	{name: "Reopen", run: testRegisterReopen, needs: func(h *Harness) bool { return h.Registers && h.Durable }},
}

func registers(h *Harness) bool { return h.Registers }

func testRegistersDeclared(f *fixture) {
	if _, ok := bare(f.store).(ledger.Registers); ok != f.harness.Registers {
		f.Fatalf("it is a ledger.Registers: %v, and declared so: %v", ok, f.harness.Registers)
	}
}

// registers returns the ability of a handle.
func (f *fixture) registers(s ledger.Store) ledger.Registers {
	f.Helper()
	r, ok := bare(s).(ledger.Registers)
	if !ok {
		f.Fatal("it is no ledger.Registers")
	}
	return r
}

// write fails the test unless the register is written.
func (f *fixture) write(r ledger.Registers, name, version, value string) string {
	f.Helper()
	next, err := r.WriteRegister(f.ctx, name, version, []byte(value))
	if err != nil || next == "" || next == version {
		f.Fatalf("writing %q of %s over version %q: version %q, %v", value, name, version, next, err)
	}
	return next
}

// holds fails the test unless the register has the version and the value.
func (f *fixture) holds(r ledger.Registers, name, version, value string) {
	f.Helper()
	got, err := r.ReadRegister(f.ctx, name)
	if err != nil || got.Name != name || got.Version != version || string(got.Value) != value {
		f.Fatalf("register %s is %q at version %q, %v; want %q at %q", got.Name, got.Value, got.Version, err, value, version)
	}
}

func testRegisterWrite(f *fixture) {
	r := f.registers(f.store)
	f.holds(r, "a", "", "")
	one := f.write(r, "a", "", "one")
	f.holds(r, "a", one, "one")
	two := f.write(r, "a", one, "two")
	again := f.write(r, "a", two, "two") // the same value is another version
	for _, version := range []string{"", one, two, "none"} {
		if _, err := r.WriteRegister(f.ctx, "a", version, []byte("x")); !errors.Is(err, ledger.ErrRegisterChanged) {
			f.Fatalf("a write over version %q: %v, want ErrRegisterChanged", version, err)
		}
	}
	if _, err := r.WriteRegister(f.ctx, "b", one, []byte("x")); !errors.Is(err, ledger.ErrRegisterChanged) {
		f.Fatalf("a write of b over a version of a: %v, want ErrRegisterChanged", err)
	}
	f.holds(r, "a", again, "two")
	f.holds(r, "b", "", "")
	ctx, cancel := context.WithCancel(f.ctx)
	cancel()
	if _, err := r.WriteRegister(ctx, "b", "", []byte("x")); err == nil || errors.Is(err, ledger.ErrRegisterChanged) {
		f.Fatalf("a write whose context has ended: %v", err)
	}
	f.holds(r, "b", "", "")
}

// Any bytes, none, and as many as are allowed.
func testRegisterValues(f *fixture) {
	r := f.registers(f.store)
	version := ""
	for _, value := range []string{"", "\x00", "\xff\xfe", "é\n'\"", strings.Repeat("\x80", ledger.MaxRegister)} {
		version = f.write(r, "archive/"+strings.Repeat("~", ledger.MaxRegisterName-8), version, value)
		f.holds(r, "archive/"+strings.Repeat("~", ledger.MaxRegisterName-8), version, value)
	}
}

func testRegisterRefused(f *fixture) {
	r := f.registers(f.store)
	for _, name := range []string{"", "a b", "a\n", "é", "\x7f", strings.Repeat("n", ledger.MaxRegisterName+1)} {
		_, readErr := r.ReadRegister(f.ctx, name)
		_, writeErr := r.WriteRegister(f.ctx, name, "", nil)
		if !errors.Is(readErr, ledger.ErrRegister) || !errors.Is(writeErr, ledger.ErrRegister) {
			f.Errorf("name %q: %v and %v, want ErrRegister", name, readErr, writeErr)
		}
	}
	if _, err := r.WriteRegister(f.ctx, "large", "", make([]byte, ledger.MaxRegister+1)); !errors.Is(err, ledger.ErrRegister) {
		f.Errorf("a value that is too large: %v, want ErrRegister", err)
	}
}

// A removed register is as one that never existed. Only its last version removes it.
func testRegisterRemove(f *fixture) {
	r := f.registers(f.store)
	remove := func(name, version string, want error) {
		f.Helper()
		if err := r.RemoveRegister(f.ctx, name, version); !errors.Is(err, want) {
			f.Fatalf("removing %s at version %q: %v, want %v", name, version, err, want)
		}
	}
	remove("a", "", ledger.ErrRegisterChanged)
	one := f.write(r, "a", "", "one")
	two := f.write(r, "a", one, "two")
	other := f.write(r, "b", "", "other")
	for _, version := range []string{"", one, other, "none"} {
		remove("a", version, ledger.ErrRegisterChanged)
	}
	f.holds(r, "a", two, "two")
	remove("a", two, nil)
	f.holds(r, "a", "", "")
	f.holds(r, "b", other, "other")
	for reg, err := range r.ListRegisters(f.ctx, "") {
		if err != nil || reg.Name == "a" {
			f.Fatalf("listing: register %q, %v", reg.Name, err)
		}
	}
	remove("a", two, ledger.ErrRegisterChanged)
	if _, err := r.WriteRegister(f.ctx, "a", two, nil); !errors.Is(err, ledger.ErrRegisterChanged) {
		f.Fatalf("a write over a removed version: %v, want ErrRegisterChanged", err)
	}
	f.holds(r, "a", f.write(r, "a", "", "again"), "again")
	ctx, cancel := context.WithCancel(f.ctx)
	cancel()
	if err := r.RemoveRegister(ctx, "b", other); err == nil || errors.Is(err, ledger.ErrRegisterChanged) {
		f.Fatalf("a removal whose context has ended: %v", err)
	}
	f.holds(r, "b", other, "other")
	remove("a b", "x", ledger.ErrRegister)
}

func testRegisterList(f *fixture) {
	r := f.registers(f.store)
	names := []string{"a", "a/", "a/1", "a/10", "a/2", "a0", "B", "b", "~"}
	for i := range 40 {
		names = append(names, fmt.Sprintf("many/%02d", i))
	}
	slices.Sort(names)
	for i := range names {
		name := names[(i*11)%len(names)] // in another order
		f.write(r, name, "", "value of "+name)
	}
	for _, prefix := range []string{"", "a", "a/", "a/1", "b", "many/", "many/1", "none", "~", "A"} {
		var got, want []string
		for reg, err := range r.ListRegisters(f.ctx, prefix) {
			if err != nil || string(reg.Value) != "value of "+reg.Name || reg.Version == "" {
				f.Fatalf("listing %q: register %q with %q, %v", prefix, reg.Name, reg.Value, err)
			}
			got = append(got, reg.Name)
		}
		for _, name := range names {
			if strings.HasPrefix(name, prefix) {
				want = append(want, name)
			}
		}
		if !slices.Equal(got, want) {
			f.Errorf("listing %q: %q, want %q", prefix, got, want)
		}
	}
	for reg, err := range r.ListRegisters(f.ctx, "a") { // ends early, and writes on the way
		if err != nil {
			f.Fatal(err)
		}
		f.write(r, reg.Name, reg.Version, "met")
		break
	}
}

// Values given and returned are the caller's.
func testRegisterOwn(f *fixture) {
	r := f.registers(f.store)
	given := []byte("given")
	version, err := r.WriteRegister(f.ctx, "a", "", given)
	if err != nil {
		f.Fatal(err)
	}
	clear(given)
	got, err := r.ReadRegister(f.ctx, "a")
	if err != nil {
		f.Fatal(err)
	}
	clear(got.Value)
	f.holds(r, "a", version, "given")
}

func testRegisterReopen(f *fixture) {
	version := f.write(f.registers(f.store), "a", "", "one")
	f.store = f.handle()
	f.holds(f.registers(f.store), "a", version, "one")
}

// Several clients read and write one register at once, and their calls have an
// order in which they make sense.
func testRegisterLinear(f *fixture) {
	const clients, calls = 4, 40
	handles, history := f.handles(), registertest.New()
	errs := make([]error, clients)
	var wg sync.WaitGroup
	for id := range clients {
		wg.Go(func() {
			errs[id] = f.useRegister(f.registers(handles[id%len(handles)]), history, id, calls)
		})
	}
	wg.Wait()
	if err := errors.Join(append(errs, history.Check())...); err != nil {
		f.Fatal(err)
	}
}

func (f *fixture) useRegister(r ledger.Registers, history *registertest.History, id, calls int) error {
	for n := range calls {
		from := history.Now()
		was, err := r.ReadRegister(f.ctx, "r")
		if err != nil {
			return err
		}
		history.Add(id, "r", from, history.Now(), registertest.Read(string(was.Value)))
		from = history.Now()
		next := fmt.Appendf(nil, "%d of %d", n, id)
		_, err = r.WriteRegister(f.ctx, "r", was.Version, next)
		switch {
		case err == nil:
			history.Add(id, "r", from, history.Now(), registertest.Applied(string(was.Value), string(next)))
		case !errors.Is(err, ledger.ErrRegisterChanged):
			return err
		}
		if bytes.Equal(was.Value, next) {
			return errors.New("a value came back before it was written")
		}
	}
	return nil
}
