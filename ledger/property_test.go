package ledger_test

import (
	"fmt"
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"github.com/pawlhq/pawl/event"
	"github.com/pawlhq/pawl/ledger"
)

// TestTransitions applies random transitions of three workers with different clocks to one row.
func TestTransitions(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := newMachine(t)
		t.Repeat(map[string]func(*rapid.T){
			"observe": m.observe, "raise": m.raise,
			"claim": m.claim, "renew": m.renew, "complete": m.complete, "fail": m.fail,
			"release": m.release, "schedule-verify": m.scheduleVerify, "redrive": m.redrive, "reset order": m.resetOrder, "purge": m.purge, "wait": m.wait,
			"": m.check,
		})
	})
}

type machine struct {
	policy   ledger.Policy
	row      ledger.Row
	now      time.Time        // the true time
	skews    [3]time.Duration // of the workers' clocks
	attempts []ledger.Claim   // granted, newest last
	fence    int64            // the largest one granted
	held     *ledger.Claim    // whose lease the row must have
}

func newMachine(t *rapid.T) *machine {
	m := &machine{policy: ledger.DefaultPolicy(), now: epoch, row: ledger.Row{RowKey: drawRowKey().Draw(t, "key")}}
	m.policy.Attempts = rapid.IntRange(1, 4).Draw(t, "attempts")
	m.policy.RowRetention = time.Hour
	for i := range m.skews {
		half := int(m.policy.Skew / 2 / time.Millisecond)
		m.skews[i] = time.Duration(rapid.IntRange(-half, half).Draw(t, "skew")) * time.Millisecond
	}
	return m
}

// apply also checks that the transition has not modified the old row or the shared history.
func (m *machine) apply(t *rapid.T, transition func(ledger.Row) ledger.Row) {
	t.Helper()
	before := m.row
	before.History = slices.Clone(m.row.History)
	next := transition(m.row)
	if !reflect.DeepEqual(before, m.row) {
		t.Fatalf("the input was changed:\n%s", cmp.Diff(before, m.row, opaque))
	}
	if next.Want.Compare(m.row.Want) < 0 || next.Have.Compare(m.row.Have) < 0 {
		t.Fatalf("Want or Have went back: %s and %s to %s and %s", m.row.Want.Order(), m.row.Have.Order(), next.Want.Order(), next.Have.Order())
	}
	if next.Lease.Fence < m.row.Lease.Fence {
		t.Fatalf("the fence went back from %d to %d", m.row.Lease.Fence, next.Lease.Fence)
	}
	m.row = next
}

var opaque = cmp.Comparer(func(a, b event.Sequencer) bool { return a.Raw() == b.Raw() })

func (m *machine) unchanged(t *rapid.T, what string, next ledger.Row) {
	t.Helper()
	if !reflect.DeepEqual(m.row, next) {
		t.Fatalf("%s changed the row:\n%s", what, cmp.Diff(m.row, next, opaque))
	}
}

func (m *machine) clock(t *rapid.T) (int, time.Time) {
	worker := rapid.IntRange(0, len(m.skews)-1).Draw(t, "worker")
	return worker, m.now.Add(m.skews[worker])
}

func (m *machine) wait(t *rapid.T) {
	m.now = m.now.Add(rapid.SampledFrom([]time.Duration{
		time.Nanosecond, time.Millisecond, 300 * time.Millisecond, time.Second, 10 * time.Second, 36 * time.Second,
		5 * time.Minute, 16 * time.Minute, time.Hour, 2 * time.Hour,
	}).Draw(t, "for"))
}

func (m *machine) observe(t *rapid.T) {
	seq, err := event.ParseSequencer(rapid.StringMatching("[0-2a-bA-B]{0,3}").Draw(t, "sequencer"))
	if err != nil {
		t.Fatal(err)
	}
	e := &event.Event{
		Object: m.row.Object(), Sequencer: seq,
		Kind: rapid.SampledFrom([]event.Kind{event.Created, event.Removed}).Draw(t, "kind"),
		Time: m.now.Add(-time.Duration(rapid.IntRange(0, 3).Draw(t, "age")) * time.Second).Truncate(time.Second),
		ETag: rapid.SampledFrom([]string{"", "a", "b"}).Draw(t, "etag"),
	}
	trusted := rapid.Bool().Draw(t, "trusted")
	_, now := m.clock(t)
	was := m.row
	var verdict ledger.Verdict
	m.apply(t, func(r ledger.Row) (next ledger.Row) {
		next, verdict = r.Observe(e, trusted, now)
		return next
	})
	switch newer := seq.CompareSameKey(was.Want.Sequencer); {
	case verdict == ledger.Disordered && (newer >= 0 || m.row.Disorder != was.Disorder+1 || !reflect.DeepEqual(m.row.Want, was.Want)):
		t.Fatalf("an event that compares %d is disordered: %+v became %+v", newer, was, m.row)
	case verdict == ledger.Disordered:
	case verdict != ledger.Raised && !reflect.DeepEqual(was, m.row):
		t.Fatalf("a %s event changed the row", verdict)
	case verdict == ledger.Raised && m.row.Want.Compare(was.Want) <= 0:
		t.Fatal("raised, and Want is the same")
	case (!trusted || seq.IsZero()) && verdict != ledger.Raised:
		t.Fatalf("an untrusted event is %s", verdict)
	case trusted && !seq.IsZero() && verdict != []ledger.Verdict{ledger.Stale, ledger.Duplicate, ledger.Raised}[newer+1]:
		t.Fatalf("%s, and the comparison is %d", verdict, newer)
	}
}

func (m *machine) raise(t *rapid.T) {
	kind := rapid.SampledFrom([]event.Kind{event.Created, event.Removed}).Draw(t, "kind")
	var id ledger.Identity
	if kind == event.Created {
		id = ledger.Identity{
			ETag:    rapid.SampledFrom([]string{"a", "b"}).Draw(t, "etag"),
			ModTime: m.now.Add(time.Duration(rapid.IntRange(-30, 30).Draw(t, "age")) * time.Minute).Truncate(time.Second),
		}
	}
	_, now := m.clock(t)
	was := m.row
	m.apply(t, func(r ledger.Row) ledger.Row { return r.Raise(kind, id, now) })
	r := &m.row
	switch {
	case r.Settled() || r.Want.Compare(was.Want) <= 0 || r.Want.Sequencer.CompareSameKey(was.Want.Sequencer) != 0:
		t.Fatalf("Want %s was raised to %s", was.Want.Order(), r.Want.Order())
	case r.Want.Kind != kind || r.Want.Identity != id:
		t.Fatalf("Want is %+v, and %s %+v was seen", r.Want, kind, id)
	case r.Dead || r.Attempts != 0 || !r.RetryAt.IsZero() || r.LastError != "":
		t.Fatalf("no fresh attempts: %+v", r)
	case !r.Doubt || r.Forced != was.Forced:
		t.Fatalf("doubt %v, forced %v became %v, %v", was.Doubt, was.Forced, r.Doubt, r.Forced)
	case !r.EventTime.Equal(was.EventTime) || r.Lease != was.Lease || !r.VerifyAt.Equal(was.VerifyAt):
		t.Fatalf("%+v became %+v", was, r)
	case r.CreatedTime.Before(was.CreatedTime) || r.CreatedTime.After(now.Add(15*time.Minute)) && !r.CreatedTime.Equal(was.CreatedTime):
		t.Fatalf("created at %v, after %v; the object is of %v", r.CreatedTime, was.CreatedTime, id.ModTime)
	}
}

func (m *machine) claim(t *rapid.T) {
	worker, now := m.clock(t)
	was := m.row
	var a ledger.Claim
	var why ledger.ClaimResult
	m.apply(t, func(r ledger.Row) (next ledger.Row) {
		next, a, why = r.Claim(fmt.Sprint("w", worker), &m.policy, now)
		return next
	})
	switch why {
	case ledger.Granted:
		if a.Fence <= m.fence {
			t.Fatalf("fence %d was granted after %d", a.Fence, m.fence)
		}
		if was.Live(now) {
			t.Fatal("granted while another lease was live")
		}
		m.fence = a.Fence
		m.attempts = append(m.attempts, a)
		m.held = &m.attempts[len(m.attempts)-1]
	case ledger.Retired:
		m.held = nil
		if !m.row.Dead {
			t.Fatal("retired and not dead")
		}
	default:
		if !reflect.DeepEqual(was, m.row) {
			t.Fatalf("refusal %d changed the row", why)
		}
	}
}

// attempt draws a granted attempt, or invents one. Most have lost their lease.
func (m *machine) attempt(t *rapid.T) *ledger.Claim {
	if len(m.attempts) == 0 {
		return &ledger.Claim{Key: m.row.RowKey}
	}
	if m.held != nil && rapid.Bool().Draw(t, "holder") {
		return m.held
	}
	return &m.attempts[rapid.IntRange(0, len(m.attempts)-1).Draw(t, "attempt")]
}

func (m *machine) ending(t *rapid.T) *ledger.Ending {
	return &ledger.Ending{
		Read: ledger.Read{
			Kind:     rapid.SampledFrom([]event.Kind{event.Created, event.Removed}).Draw(t, "read"),
			Identity: ledger.Identity{ETag: rapid.SampledFrom([]string{"a", "b"}).Draw(t, "etag")},
		},
		Sent: rapid.Bool().Draw(t, "sent"), Unsure: rapid.Bool().Draw(t, "unsure"),
	}
}

// finish checks that a transition succeeds only for the holder of the lease.
func (m *machine) finish(t *rapid.T, a *ledger.Claim, transition func(ledger.Row) (ledger.Row, bool)) {
	t.Helper()
	was := m.row
	var ok bool
	m.apply(t, func(r ledger.Row) (next ledger.Row) {
		next, ok = transition(r)
		return next
	})
	switch holds := m.held != nil && m.held.Fence == a.Fence; {
	case ok != holds:
		t.Fatalf("answer %v to fence %d, whose hold is %v", ok, a.Fence, holds)
	case !ok:
		if !reflect.DeepEqual(was, m.row) {
			t.Fatal("a refusal changed the row")
		}
	case m.row.Held():
		t.Fatal("the lease was not ended")
	default:
		m.held = nil
	}
}

func (m *machine) complete(t *rapid.T) {
	a, e := m.attempt(t), m.ending(t)
	_, now := m.clock(t)
	held := m.held != nil && m.held.Fence == a.Fence
	m.finish(t, a, func(r ledger.Row) (ledger.Row, bool) { return r.Complete(a, e, e.Sent, &m.policy, now) })
	switch {
	case !held:
	case m.row.Have.Compare(a.Want) != 0 || m.row.Have.Kind != e.Read.Kind || !m.row.Have.Identity.Same(e.Read.Identity):
		t.Fatalf("Have is %+v, Want was %+v", m.row.Have, a.Want)
	case e.Unsure && m.row.VerifyAt.Before(now.Add(m.policy.LateWriteWindow)):
		t.Fatalf("unsure at %v, and verified at %v", now, m.row.VerifyAt)
	}
}

func (m *machine) fail(t *rapid.T) {
	a, e := m.attempt(t), m.ending(t)
	_, now := m.clock(t)
	f := &ledger.Failure{
		Message: rapid.String().Draw(t, "message"), Permanent: rapid.Bool().Draw(t, "permanent"),
		After: time.Duration(rapid.IntRange(0, 100).Draw(t, "after")) * time.Second,
	}
	jitter := rapid.Float64Range(0, 0.999).Draw(t, "jitter")
	m.finish(t, a, func(r ledger.Row) (ledger.Row, bool) { return r.Fail(a, e, f, jitter, &m.policy, now) })
	if at := m.row.RetryAt; at.After(now.Add(max(m.policy.Max, f.After))) && at.After(m.row.UpdatedAt.Add(max(m.policy.Max, 100*time.Second))) {
		t.Fatalf("retry %v after now", at.Sub(now))
	}
}

func (m *machine) release(t *rapid.T) {
	a, e := m.attempt(t), m.ending(t)
	_, now := m.clock(t)
	m.finish(t, a, func(r ledger.Row) (ledger.Row, bool) { return r.Release(a, e, &m.policy, now) })
}

func (m *machine) renew(t *rapid.T) {
	a := m.attempt(t)
	_, now := m.clock(t)
	next, ok := m.row.Renew(a, &m.policy, now)
	switch holds := m.held != nil && m.held.Fence == a.Fence; {
	case ok != holds:
		t.Fatalf("answer %v to fence %d, whose hold is %v", ok, a.Fence, holds)
	case !ok:
		m.unchanged(t, "a refused renewal", next)
	default:
		m.apply(t, func(ledger.Row) ledger.Row { return next })
	}
}

func (m *machine) scheduleVerify(t *rapid.T) {
	e := m.ending(t)
	_, now := m.clock(t)
	was := m.row
	m.apply(t, func(r ledger.Row) ledger.Row { return r.ScheduleVerify(e, &m.policy, now) })
	at := m.row.VerifyAt
	if at.Before(now) || at.Before(was.VerifyAt) || was.Live(now) && at.Before(was.Lease.Until) || e.Unsure && at.Before(now.Add(m.policy.LateWriteWindow)) {
		t.Fatalf("suspected at %v, and verified at %v", now, at)
	}
}

func (m *machine) redrive(t *rapid.T) {
	force := rapid.Bool().Draw(t, "force")
	_, now := m.clock(t)
	m.apply(t, func(r ledger.Row) ledger.Row { return r.Redrive(force, now) })
	if m.row.Dead || m.row.Attempts != 0 || force && (m.row.Settled() || !m.row.Forced) {
		t.Fatalf("redriven to %+v", m.row)
	}
}

func (m *machine) resetOrder(t *rapid.T) {
	if m.row.Held() || m.row.CreatedAt.IsZero() {
		return
	}
	_, now := m.clock(t)
	was := m.row
	m.row = was.ResetOrder(now) // the purpose of a reset is to lower Want
	switch r := &m.row; {
	case !r.Want.Sequencer.IsZero() || !r.Have.Sequencer.IsZero():
		t.Fatalf("reset to %s and %s", r.Want.Order(), r.Have.Order())
	case r.Settled() || r.Want.Generation <= was.Want.Generation || r.Have.Kind != 0 && r.Have.Generation <= was.Want.Generation:
		t.Fatalf("%s and %s reset to %s and %s", was.Want.Order(), was.Have.Order(), r.Want.Order(), r.Have.Order())
	case r.Lease != was.Lease || r.Dead != was.Dead || r.Doubt != was.Doubt:
		t.Fatalf("%+v became %+v", was, r)
	}
}

// After a purge, the next event creates the row again. Want and Have restart, but the fence must
// not.
func (m *machine) purge(t *rapid.T) {
	_, now := m.clock(t)
	m.policy.PurgeSettled = rapid.Bool().Draw(t, "settled")
	if !m.row.Purgeable(&m.policy, now) {
		return
	}
	if m.row.Have.Kind != event.Removed && !m.policy.PurgeSettled || !m.row.Settled() || m.row.Dead || m.row.Held() || !m.row.VerifyAt.IsZero() {
		t.Fatalf("forgotten: %+v", m.row)
	}
	m.row = ledger.Row{RowKey: m.row.RowKey}
	m.held = nil
}

func (m *machine) check(t *rapid.T) {
	r := &m.row
	if len(r.History) > ledger.MaxHistory {
		t.Fatalf("%d entries of history", len(r.History))
	}
	if r.Attempts < 0 || r.Attempts > m.policy.Attempts {
		t.Fatalf("%d attempts of %d", r.Attempts, m.policy.Attempts)
	}
	if r.Have.Compare(r.Want) > 0 {
		t.Fatalf("Have %s is ahead of Want %s", r.Have.Order(), r.Want.Order())
	}
	if r.Held() != (m.held != nil) || r.Held() && r.Lease.Fence != m.held.Fence {
		t.Fatalf("lease %+v, want that of %+v", r.Lease, m.held)
	}
	if !slices.Contains(ledger.States, r.State(m.now)) {
		t.Fatalf("state %q", r.State(m.now))
	}
	m.checkDue(t)
	m.checkEncoding(t)
}

// checkDue checks that a due row can be claimed or retired, and that other rows cannot. A worker
// with a slow clock may claim a pending row before it is due.
func (m *machine) checkDue(t *rapid.T) {
	r := m.row
	due := r.Due()
	if r.CreatedAt.IsZero() {
		return // there is no row yet
	}
	for _, at := range []time.Time{m.now, r.UpdatedAt, r.Lease.Until, r.RetryAt, r.VerifyAt, due} {
		for _, now := range []time.Time{at.Add(-1), at, at.Add(1)} {
			if now.Before(r.UpdatedAt) {
				continue
			}
			isDue := !due.IsZero() && !due.After(now)
			_, _, why := r.Claim("sweeper", &m.policy, now)
			taken := why == ledger.Granted || why == ledger.Retired
			if rounded := taken && due.Sub(now) < time.Millisecond; taken != isDue && !rounded {
				t.Fatalf("at %v: due %v (%v), but Claim returned %d", now, isDue, due, why)
			}
		}
	}
}

func (m *machine) checkEncoding(t *rapid.T) {
	m.row.Nonce = ledger.Nonce{1}
	body, err := ledger.Encode(&m.row)
	if err != nil {
		t.Fatal(err)
	}
	got := ledger.Decode(m.row.RowKey, m.row.Nonce, body)
	err = got.Unreadable
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(m.row, got, opaque, cmpopts.EquateEmpty()); d != "" {
		t.Fatalf("after encoding (-want +got):\n%s", d)
	}
}

func drawRowKey() *rapid.Generator[ledger.RowKey] {
	name := func(alphabet string) *rapid.Generator[string] {
		return rapid.Map(rapid.SliceOfN(rapid.SampledFrom([]byte(alphabet)), 0, 4), func(b []byte) string { return string(b) })
	}
	return rapid.Custom(func(t *rapid.T) ledger.RowKey {
		return ledger.RowKey{
			Pipeline: name("ab:1").Draw(t, "pipeline"), Bucket: name("ab:1").Draw(t, "bucket"),
			Key: name("ab:1/\x00\xff").Draw(t, "key"), VersionID: name("ab:1/").Draw(t, "version"),
		}
	})
}
