//go:build unix

package e2e

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/pawlhq/pawl/action"
	"github.com/pawlhq/pawl/event"
	"github.com/pawlhq/pawl/ledger"
)

// These tests check the checkers of TestKills: they break each rule, one at a time.

type rowWriter struct {
	history rowHistory
	row     ledger.Row
	policy  ledger.Policy
	now     time.Time
}

func newRowWriter() *rowWriter {
	c := &rowWriter{policy: ledger.DefaultPolicy(), now: time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)}
	c.row.RowKey = ledger.RowKey{Pipeline: pipelineTell, Bucket: inputs, Key: "k"}
	c.history.key = c.row.RowKey
	return c
}

func (c *rowWriter) put(row ledger.Row) {
	c.row, c.now = row, c.now.Add(time.Second)
	c.history.observe(row)
}

func (c *rowWriter) raise() {
	row, _ := c.row.Observe(&event.Event{Kind: event.Created, Name: "Put", Time: c.now}, false, c.now)
	c.put(row)
}

func (c *rowWriter) claim(owner string) *ledger.Claim {
	row, a, _ := c.row.Claim(owner, &c.policy, c.now)
	c.put(row)
	return &a
}

func (c *rowWriter) complete(a *ledger.Claim, etag string) {
	row, _ := c.row.Complete(a, ending(etag), true, &c.policy, c.now)
	c.put(row)
}

func ending(etag string) *ledger.Ending {
	return &ledger.Ending{Sent: true, Read: ledger.Read{Kind: event.Created, Identity: ledger.Identity{ETag: etag}}}
}

func (c *rowWriter) settle(etag string) {
	c.raise()
	c.complete(c.claim("a"), etag)
}

func (c *rowWriter) expire() { c.now = c.now.Add(time.Hour) }

// edit makes a change that no transition makes.
func (c *rowWriter) edit(f func(*ledger.Row)) {
	row := c.row
	f(&row)
	c.put(row)
}

func TestRowHistoryReportsViolations(t *testing.T) {
	for _, tt := range []struct {
		name string
		do   func(*rowWriter)
		want string
	}{
		{"valid", func(c *rowWriter) {
			c.settle("1")
			c.settle("2")
			c.raise()
			c.claim("a")
			c.expire()
			a := c.claim("b")
			c.raise()
			c.complete(a, "2") // allowed: the result of the first attempt is unknown
			c.complete(c.claim("b"), "3")
			c.expire()
			row, _ := c.row.Complete(c.claim("c"), ending("3"), false, &c.policy, c.now) // verified
			c.put(row)
		}, ""},
		{"deleted", func(c *rowWriter) { c.settle("1"); c.history.observeDeletion() }, "was deleted"},
		{"want", func(c *rowWriter) { c.raise(); c.edit(func(r *ledger.Row) { r.Want.Generation = 0 }) }, "want went back"},
		{"have", func(c *rowWriter) { c.settle("1"); c.edit(func(r *ledger.Row) { r.Have = ledger.Version{} }) }, "have went back"},
		{"fence", func(c *rowWriter) { c.settle("1"); c.edit(func(r *ledger.Row) { r.Lease.Fence-- }) }, "the fence went back"},
		{"unknown members", func(c *rowWriter) {
			c.edit(func(r *ledger.Row) { r.Unknown = `{"next":1}` })
			c.edit(func(r *ledger.Row) { r.Unknown = "" })
		}, "the unknown members"},
		{"ahead", func(c *rowWriter) { c.settle("1"); c.edit(func(r *ledger.Row) { r.Have.Generation++ }) }, "is greater than want"},
		{"have without a cause", func(c *rowWriter) {
			c.settle("1")
			c.raise()
			c.edit(func(r *ledger.Row) { r.Have.Generation++ })
		}, "without a completion"},
		{"same fence again", func(c *rowWriter) {
			c.settle("1")
			c.raise()
			c.row.Lease.Fence, c.now = c.row.Lease.Fence-1, time.UnixMilli(c.row.Lease.Fence)
			c.claim("b")
		}, "was granted after"},
		{"two holders", func(c *rowWriter) {
			c.raise()
			c.claim("a")
			c.row.Lease.Owner = ""
			c.claim("b")
		}, "while"},
		{"taken over too early", func(c *rowWriter) {
			c.raise()
			c.claim("a")
			c.row.Lease.Until = c.now
			c.claim("b")
		}, "before its lease expired"},
		{"short lease", func(c *rowWriter) {
			c.raise()
			c.policy.TTL, c.policy.Skew = time.Second, 0
			c.claim("a")
		}, "a lease of 1s"},
		{"lease without a claim", func(c *rowWriter) {
			c.raise()
			c.edit(func(r *ledger.Row) { r.Lease = ledger.Lease{Owner: "a", Fence: 7} })
		}, `held by "a"`},
		{"lease lost without a cause", func(c *rowWriter) {
			c.raise()
			c.claim("a")
			c.edit(func(r *ledger.Row) { r.Lease.Owner = "" })
		}, `held by ""`},
		{"completed without its lease", func(c *rowWriter) {
			c.raise()
			a := c.claim("a")
			c.complete(a, "1")
			c.row.Lease.Owner = "a"
			c.complete(a, "1")
		}, "without a lease"},
		{"have is want at the end", func(c *rowWriter) {
			c.raise()
			a := c.claim("a")
			c.raise()
			a.Want = c.row.Want
			c.complete(a, "1")
		}, "but committed"},
		{"a version twice", func(c *rowWriter) {
			c.settle("1")
			c.row.Have = ledger.Version{}
			c.complete(c.claim("a"), "2")
		}, "was committed by fence"},
		{"an effect twice", func(c *rowWriter) { c.settle("1"); c.settle("1") }, "with no attempt of unknown result between"},
		{"forced without a request", func(c *rowWriter) { c.settle("1"); c.put(c.row.Redrive(true, c.now)) }, "without a request"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c := newRowWriter()
			tt.do(c)
			wantViolation(t, c.history.violations, tt.want)
		})
	}
}

func wantViolation(t *testing.T, bad []string, want string) {
	t.Helper()
	all := strings.Join(bad, "\n")
	if want == "" && len(bad) > 0 || !strings.Contains(all, want) {
		t.Errorf("violations:\n%s\nwant %q", all, want)
	}
}

// historyOfThreeAttempts returns a history with three attempts: content 1 with an unknown result,
// content 1 again, and content 2.
func historyOfThreeAttempts(t *testing.T) *rowHistory {
	t.Helper()
	l := &rowHistory{}
	for i, etag := range []string{"1", "1", "2"} {
		have := ledger.Version{Kind: event.Created, Identity: ledger.Identity{ETag: etag}}
		l.attempts = append(l.attempts, &attempt{fence: int64(i + 1), outcome: "completed", have: have})
	}
	l.attempts[0].outcome, l.attempts[0].unknown = "taken over", true
	return l
}

func effectOf(fence int64, etag string, arrived int) *effect {
	return &effect{
		Facts:   action.Facts{Kind: event.Created, ETag: etag, Fence: fence, IdempotencyKey: etag},
		arrived: arrived, happened: arrived + 1, answered: arrived + 2,
	}
}

func TestEffectViolationsReportsViolations(t *testing.T) {
	first, second, third := effectOf(1, "1", 10), effectOf(2, "1", 20), effectOf(3, "2", 30)
	for _, tt := range []struct {
		name    string
		effects []*effect
		change  func(*rowHistory)
		want    string
	}{
		{"valid", []*effect{first, second, third}, nil, ""},
		{"the first never sent", []*effect{second, third}, nil, ""},
		{"the first comes late", []*effect{second, third, effectOf(1, "1", 40)}, nil, ""},
		{"never granted", []*effect{effectOf(9, "1", 5), second, third}, nil, "never granted"},
		{"twice", []*effect{second, effectOf(2, "1", 23), third}, nil, "twice in one attempt"},
		{"a completed one comes late", []*effect{third, effectOf(2, "1", 40)}, nil, "had ended"},
		{"two at a time", []*effect{second, effectOf(3, "2", 21)}, nil, "had ended"},
		{"none", []*effect{second}, nil, "without its effect"},
		{"not over", []*effect{second, {Facts: third.Facts, arrived: 30}}, nil, "without its effect"},
		{"another version", []*effect{second, effectOf(3, "1", 30)}, nil, "was committed"},
		{"nothing to do", []*effect{second, third}, func(l *rowHistory) { l.attempts[2].outcome = "nothing to do" }, "there was nothing to do"},
		{"back", []*effect{effectOf(1, "2", 10), second, third}, nil, ", after content"},
		{"again", []*effect{first, second, third}, func(l *rowHistory) { l.attempts[0].unknown = false }, "with no attempt of unknown result"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			l := historyOfThreeAttempts(t)
			if tt.change != nil {
				tt.change(l)
			}
			wantViolation(t, effectViolations(l, tt.effects, []string{"1", "2"}), tt.want)
		})
	}
}

func TestFencingReceiverRejectsOldFencesAndRepeats(t *testing.T) {
	acts, late, known := fencingReceiver([]*effect{effectOf(2, "2", 1), effectOf(3, "2", 2), effectOf(1, "3", 3), effectOf(4, "3", 4)})
	if len(acts) != 2 || acts[0].ETag != "2" || acts[1].Fence != 4 || late != 1 || known != 1 {
		t.Errorf("acts %v, late %d, known %d", acts, late, known)
	}
}

func TestOutputViolationsReportsViolations(t *testing.T) {
	at := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	change := func(kind event.Kind, fence int64, etag string, second int) *outputChange {
		seq, err := event.ParseSequencer(fmt.Sprintf("%04X", second))
		if err != nil {
			t.Fatal(err)
		}
		return &outputChange{Event: event.Event{Kind: kind, Sequencer: seq, Time: at.Add(time.Duration(second) * time.Second)}, fence: fence, etag: etag}
	}
	write := func(fence int64, etag string, second int) *outputChange {
		return change(event.Created, fence, etag, second)
	}
	second, third, removal := write(2, "1", 20), write(3, "2", 30), change(event.Removed, 0, "", 35)
	for _, tt := range []struct {
		name   string
		writes []*outputChange
		want   string
		late   int
	}{
		{"valid", []*outputChange{second, third, removal}, "", 0},
		{"the first comes late, to none", []*outputChange{second, third, removal, write(1, "1", 40)}, "", 1},
		{"the first replaces a newer one", []*outputChange{second, third, write(1, "1", 34), removal, write(1, "1", 40)}, "replaces a newer one", 2},
		{"never granted", []*outputChange{second, third, write(9, "2", 40)}, "never granted", 0},
		{"none", []*outputChange{third}, "without a write", 0},
		{"a completed one comes late", []*outputChange{third, removal, write(2, "1", 40)}, "although it completed", 1},
	} {
		t.Run(tt.name, func(t *testing.T) {
			bad, late := outputViolations(historyOfThreeAttempts(t), tt.writes, []string{"1", "2"})
			if wantViolation(t, bad, tt.want); late != tt.late {
				t.Errorf("%d late, want %d", late, tt.late)
			}
		})
	}
}
