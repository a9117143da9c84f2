package audit_test

import (
	"fmt"
	"reflect"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/pawlhq/pawl/audit"
	"github.com/pawlhq/pawl/event"
	"github.com/pawlhq/pawl/ledger"
)

// TestConverges changes an object while notifications are lost, duplicated and reordered, and
// workers and audits run. After the last change, one audit must repair all losses.
func TestConverges(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := &convergence{
			transcript: transcript{now: start, row: ledger.Row{RowKey: key}, policy: ledger.DefaultPolicy(), byEvent: rapid.Bool().Draw(t, "by event")},
			trusted:    rapid.Bool().Draw(t, "trusted"),
			versioned:  rapid.Bool().Draw(t, "versioned"),
		}
		m.trusted = m.trusted || m.byEvent
		t.Repeat(map[string]func(*rapid.T){
			"put": m.put, "delete": m.delete, "notify": m.notify, "work": m.attempt, "audit": m.audit, "wait": m.wait,
		})
		m.converge(t)
	})
}

type convergence struct {
	transcript
	trusted, versioned bool
	events             []event.Event // every change; each event may arrive at any time
}

func (m *convergence) change(t *rapid.T, kind event.Kind, id ledger.Identity) {
	seq, err := event.ParseSequencer(fmt.Sprintf("%04X", len(m.events)+1))
	if err != nil {
		t.Fatal(err)
	}
	m.events = append(m.events, event.Event{Object: key.Object(), Kind: kind, Sequencer: seq, Time: m.now, ETag: id.ETag, Size: id.Size})
	m.events[len(m.events)-1].Object.VersionID = id.VersionID
	m.now = m.now.Add(time.Second) // contents differ in time
}

func (m *convergence) put(t *rapid.T) {
	id := identity(rapid.SampledFrom([]string{"a", "b", "poison"}).Draw(t, "etag"), m.now)
	if m.versioned {
		id.VersionID = fmt.Sprint("v", len(m.events))
	}
	m.object = exists(id)
	m.change(t, event.Created, id)
}

func (m *convergence) delete(t *rapid.T) {
	m.object = gone
	m.change(t, event.Removed, ledger.Identity{})
}

func (m *convergence) notify(t *rapid.T) {
	if len(m.events) == 0 {
		return
	}
	e := rapid.SampledFrom(m.events).Draw(t, "event")
	m.row, _ = m.row.Observe(&e, m.trusted, m.now)
}

func (m *convergence) wait(t *rapid.T) {
	m.now = m.now.Add(rapid.SampledFrom([]time.Duration{time.Second, time.Minute, time.Hour, settle, settle + time.Second}).Draw(t, "for"))
}

func (m *convergence) attempt(t *rapid.T) {
	r, a, why := m.row.Claim("w1", &m.policy, m.now)
	switch {
	case why == ledger.Retired:
		m.row = r
		return
	case why != ledger.Granted:
		return
	}
	m.row = r
	read := m.read(&a)
	poison := read.Identity.ETag == "poison"
	switch end := rapid.SampledFrom([]string{"finish", "fail", "crash"}).Draw(t, "end"); {
	case end == "crash":
	case end == "fail":
		m.row, _ = r.Fail(&a, &ledger.Ending{}, &ledger.Failure{Message: "no luck", Permanent: poison}, 0.5, &m.policy, m.now)
	default:
		m.finish(&a, read, poison)
	}
}

func (m *convergence) read(a *ledger.Claim) ledger.Read {
	switch {
	case m.byEvent:
		return ledger.Read{Kind: a.Want.Kind, Identity: a.Want.Identity, ByEvent: true}
	case m.object.Exists:
		return ledger.Read{Kind: event.Created, Identity: m.object.Identity}
	}
	return ledger.Read{Kind: event.Removed}
}

func (m *convergence) finish(a *ledger.Claim, read ledger.Read, poison bool) {
	end := &ledger.Ending{Read: read, Sent: true}
	if poison {
		m.row, _ = m.row.Fail(a, end, &ledger.Failure{Message: "poison", Permanent: true}, 0, &m.policy, m.now)
		return
	}
	m.row, _ = m.row.Complete(a, end, true, &m.policy, m.now)
}

func (m *convergence) audit(t *rapid.T) {
	before := m.row
	next, loss := audit.Decide(m.row, m.object, settle, m.now)
	if !reflect.DeepEqual(next.Have, before.Have) || (loss != audit.None) != (next.Want.Compare(before.Want) > 0) {
		t.Fatalf("%v: %+v became %+v", loss, before, next)
	}
	m.row = next
}

func (m *convergence) converge(t *rapid.T) {
	for range 2 {
		for due := m.row.Due(); !due.IsZero(); due = m.row.Due() {
			if due.After(m.now) {
				m.now = due
			}
			r, a, why := m.row.Claim("w1", &m.policy, m.now)
			m.row = r
			if read := m.read(&a); why == ledger.Granted {
				m.finish(&a, read, read.Identity.ETag == "poison")
			}
		}
		m.now = m.now.Add(settle + time.Second)
		m.audit(t)
	}
	known := m.row.Have
	if m.row.Dead {
		known = m.row.Want
	}
	switch {
	case !m.row.Dead && !m.row.Settled():
		t.Fatalf("the second audit found a loss: %+v", m.row)
	case m.object.Exists && (known.Kind != event.Created || !known.Identity.CompatibleWith(m.object.Identity)):
		t.Fatalf("the object is %+v, but the row %+v", m.object.Identity, m.row)
	case !m.object.Exists && known.Kind == event.Created:
		t.Fatalf("the object is gone, but the row is %+v", m.row)
	}
}
