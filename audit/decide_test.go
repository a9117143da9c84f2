package audit_test

import (
	"reflect"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/pawlhq/pawl/audit"
	"github.com/pawlhq/pawl/event"
	"github.com/pawlhq/pawl/ledger"
)

const settle = 12 * time.Hour

var (
	now = time.Date(2026, time.March, 1, 0, 0, 0, 0, time.UTC)
	// old is the latest time that an audit acts on. It ignores changes at fresh.
	old   = now.Add(-settle - time.Second)
	fresh = now.Add(-settle)
	key   = ledger.RowKey{Pipeline: "gray", Bucket: "photos", Key: "cat.jpg"}
)

func identity(etag string, at time.Time) ledger.Identity {
	return ledger.Identity{ETag: etag, ModTime: at, Meta: "m", Size: 7}
}

func exists(id ledger.Identity) audit.Observation {
	return audit.Observation{Exists: true, Identity: id}
}

var gone audit.Observation

func created(id ledger.Identity) ledger.Version {
	return ledger.Version{Generation: 1, Kind: event.Created, Identity: id}
}

var removed = ledger.Version{Generation: 1, Kind: event.Removed}

func row(have ledger.Version, edits ...func(*ledger.Row)) ledger.Row {
	r := ledger.Row{
		RowKey: key, Nonce: ledger.Nonce{1}, Want: have, Have: have,
		CreatedAt: old, UpdatedAt: old, EventTime: old, Lease: ledger.Lease{Fence: 1},
	}
	for _, edit := range edits {
		edit(&r)
	}
	return r
}

func wants(v ledger.Version) func(*ledger.Row) { return func(r *ledger.Row) { r.Want = v } }
func dead(r *ledger.Row)                       { r.Dead, r.Attempts, r.LastError = true, 8, "poison" }
func pending(r *ledger.Row)                    { r.Want.Generation++ }
func failed(r *ledger.Row)                     { r.Want.Generation++; r.Attempts, r.RetryAt = 1, now.Add(time.Minute) }
func verifies(r *ledger.Row)                   { r.VerifyAt = now.Add(time.Minute) }
func updated(at time.Time) func(*ledger.Row)   { return func(r *ledger.Row) { r.UpdatedAt = at } }
func lastEvent(at time.Time) func(*ledger.Row) { return func(r *ledger.Row) { r.EventTime = at } }

func leased(until time.Time) func(*ledger.Row) {
	return func(r *ledger.Row) { r.Lease = ledger.Lease{Owner: "w1", Fence: 1, Until: until} }
}

type decision struct {
	name string
	row  ledger.Row
	seen audit.Observation
	want audit.Finding
}

func eventIdentity(etag string) ledger.Identity { return ledger.Identity{ETag: etag, Size: 7} }

var (
	none = ledger.Row{RowKey: key}
	a    = created(identity("a", old.Add(-time.Hour)))
	b    = created(identity("b", old))
)

var decisions = []decision{
	{"no row, no object", none, gone, audit.None},
	{"no row, old object", none, exists(identity("a", old)), audit.LostCreation},
	{"no row, object exactly settle old", none, exists(identity("a", fresh)), audit.None},
	{"no row, object of the future", none, exists(identity("a", now.Add(time.Hour))), audit.None},

	{"settled at the object", row(a), exists(a.Identity), audit.None},
	{"settled at another", row(a), exists(b.Identity), audit.LostOverwrite},
	{"settled at another, exactly settle old", row(a), exists(identity("b", fresh)), audit.None},
	{"settled at another time of the same content", row(a), exists(identity("a", old)), audit.LostOverwrite},
	{"settled at another, just now", row(a, updated(now), lastEvent(now)), exists(b.Identity), audit.LostOverwrite},
	{"settled at a removal, and back", row(removed), exists(a.Identity), audit.LostCreation},
	{"settled at a removal, and back exactly settle ago", row(removed), exists(identity("a", fresh)), audit.None},
	{"settled at a removal", row(removed), gone, audit.None},
	{"settled, and gone", row(a), gone, audit.LostRemoval},
	{"settled exactly settle ago, and gone", row(a, updated(fresh)), gone, audit.None},
	{"settled, gone, last event exactly settle ago", row(a, lastEvent(fresh)), gone, audit.None},
	{"settled at another version than the event's", row(a, wants(created(eventIdentity("z")))), exists(a.Identity), audit.None},
	{"settled at the object, although an event reported a removal", row(a, wants(removed)), exists(a.Identity), audit.None},
	{"to be verified, and at another", row(a, verifies), exists(b.Identity), audit.LostOverwrite},

	{"by event, at the object", row(created(eventIdentity("a"))), exists(a.Identity), audit.None},
	{"by event, at another", row(created(eventIdentity("a"))), exists(b.Identity), audit.LostOverwrite},
	{"by event, one version", row(created(ledger.Identity{VersionID: "1", ETag: "a"})), exists(ledger.Identity{VersionID: "1", ETag: "a", ModTime: old}), audit.None},
	{"by event, another version", row(created(ledger.Identity{VersionID: "1", ETag: "a"})), exists(ledger.Identity{VersionID: "2", ETag: "a", ModTime: old}), audit.LostOverwrite},
	{"by event, gone", row(created(eventIdentity("a"))), gone, audit.LostRemoval},

	{"pending", row(a, pending), exists(b.Identity), audit.None},
	{"pending, gone", row(a, pending), gone, audit.None},
	{"pending, back", row(removed, pending), exists(b.Identity), audit.None},
	{"never settled", row(ledger.Version{}, wants(created(eventIdentity("a")))), exists(b.Identity), audit.None},
	{"backing off", row(a, failed), exists(b.Identity), audit.None},
	{"backing off, gone", row(a, failed), gone, audit.None},
	{"being verified", row(a, leased(now.Add(time.Minute))), exists(b.Identity), audit.None},
	{"being verified, gone", row(a, leased(now.Add(time.Minute))), gone, audit.None},
	{"its verifier crashed", row(a, leased(old)), exists(b.Identity), audit.None},
	{"its verifier crashed, gone", row(a, leased(old)), gone, audit.None},
	{"being processed", row(a, pending, leased(now.Add(time.Minute))), exists(b.Identity), audit.None},

	{"dead of the object", row(a, wants(created(b.Identity)), pending, dead), exists(b.Identity), audit.None},
	{"dead of the object, unread", row(a, wants(created(eventIdentity("b"))), pending, dead), exists(b.Identity), audit.None},
	{"dead of another, unread", row(a, wants(created(eventIdentity("b"))), pending, dead), exists(identity("c", old)), audit.LostOverwrite},
	{"dead of another", row(a, wants(b), pending, dead), exists(identity("c", old)), audit.LostOverwrite},
	{"dead of another, exactly settle old", row(a, wants(b), pending, dead), exists(identity("c", fresh)), audit.None},
	{"dead of another version than the object and Have", row(a, wants(b), pending, dead), exists(a.Identity), audit.LostOverwrite},
	{"dead, gone", row(removed, wants(b), pending, dead), gone, audit.LostRemoval},
	{"dead exactly settle ago, gone", row(removed, wants(b), pending, dead, updated(fresh)), gone, audit.None},
	{"dead, gone, last event exactly settle ago", row(removed, wants(b), pending, dead, lastEvent(fresh)), gone, audit.None},
	{"dead of a removal, gone", row(a, wants(removed), pending, dead), gone, audit.None},
	{"dead of a removal, and back", row(a, wants(removed), pending, dead), exists(a.Identity), audit.LostCreation},
	{"dead of a verification, and at another", row(a, dead), exists(b.Identity), audit.LostOverwrite},
}

func TestDecide(t *testing.T) {
	for _, test := range decisions {
		t.Run(test.name, func(t *testing.T) {
			next, loss := audit.Decide(test.row, test.seen, settle, now)
			if loss != test.want {
				t.Fatalf("%v, want %v", loss, test.want)
			}
			want := test.row
			switch {
			case loss == audit.LostRemoval:
				want = want.Raise(event.Removed, ledger.Identity{}, now)
			case loss != audit.None:
				want = want.Raise(event.Created, test.seen.Identity, now)
			}
			if !reflect.DeepEqual(want, next) {
				t.Error(cmp.Diff(want, next, cmp.AllowUnexported(event.Sequencer{})))
			}
		})
	}
}

func TestFindingString(t *testing.T) {
	for l, want := range map[audit.Finding]string{
		audit.None: "none", audit.LostCreation: "lost creation", audit.LostOverwrite: "lost overwrite", audit.LostRemoval: "lost removal",
	} {
		if got := l.String(); got != want {
			t.Errorf("%d: %q, want %q", l, got, want)
		}
	}
}

func TestLossIsRaisedOnce(t *testing.T) {
	p := ledger.DefaultPolicy()
	for _, test := range decisions {
		next, loss := audit.Decide(test.row, test.seen, settle, now)
		if loss == audit.None {
			continue
		}
		converged := func(t *testing.T, what string, r ledger.Row) {
			t.Helper()
			for _, later := range []time.Duration{time.Second, settle, 10 * settle} {
				if again, loss := audit.Decide(r, test.seen, settle, now.Add(later)); loss != audit.None || !reflect.DeepEqual(r, again) {
					t.Errorf("%s, and %v later: %v again", what, later, loss)
				}
			}
		}
		for _, byEvent := range []bool{false, true} {
			t.Run(test.name, func(t *testing.T) {
				converged(t, "raised", next)
				held, attempt, why := next.Claim("w1", &p, now)
				if why != ledger.Granted {
					t.Fatalf("the claim was refused: %d", why)
				}
				converged(t, "claimed", held)
				read := ledger.Read{Kind: event.Removed}
				if test.seen.Exists {
					read = ledger.Read{Kind: event.Created, Identity: test.seen.Identity}
				}
				if byEvent {
					read = ledger.Read{Kind: attempt.Want.Kind, Identity: attempt.Want.Identity, ByEvent: true}
				}
				end := &ledger.Ending{Read: read, Sent: true}
				done, _ := held.Complete(&attempt, end, true, &p, now)
				converged(t, "completed", done)
				failed, _ := held.Fail(&attempt, end, &ledger.Failure{Message: "poison", Permanent: true}, 0, &p, now)
				converged(t, "dead", failed)
				unread, _ := held.Fail(&attempt, &ledger.Ending{}, &ledger.Failure{Message: "poison", Permanent: true}, 0, &p, now)
				converged(t, "dead unread", unread)
				released, _ := held.Release(&attempt, &ledger.Ending{}, &p, now)
				converged(t, "released", released)
			})
		}
	}
}
