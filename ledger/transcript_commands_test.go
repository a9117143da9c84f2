package ledger_test

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/pawlhq/pawl/event"
	"github.com/pawlhq/pawl/ledger"
)

// policy attempts=3 ttl=30s skew=5s base=1s max=5m horizon=15m retain=720h
func (s *story) setPolicy(a args) (string, error) {
	p := &s.policy
	for name, d := range map[string]*time.Duration{
		"ttl": &p.TTL, "skew": &p.Skew, "base": &p.Base, "max": &p.Max, "horizon": &p.LateWriteWindow, "retain": &p.RowRetention,
	} {
		if a.has(name) {
			var err error
			if *d, err = a.duration(name); err != nil {
				return "", err
			}
		}
	}
	if a.has("attempts") {
		var err error
		if p.Attempts, err = strconv.Atoi(a.text("attempts", "")); err != nil {
			return "", err
		}
	}
	return fmt.Sprintf("ttl %v, skew %v, attempts %d, back-off %v to %v, horizon %v, retain %v",
		p.TTL, p.Skew, p.Attempts, p.Base, p.Max, p.LateWriteWindow, p.RowRetention), nil
}

// show [history] [on=bucket/key] [at=..]
func (s *story) show(a args) (string, error) {
	r := s.row(a.key())
	if !a.has("history") {
		return s.describe(&r), nil
	}
	var b strings.Builder
	for _, e := range r.History {
		fmt.Fprintf(&b, "%s %s: %s\n", since(e.At), e.What, s.relative(e.Note))
	}
	return b.String(), nil
}

func (s *story) crash(a args) (string, error) {
	name, at, err := s.attempt(a)
	if err != nil {
		return "", err
	}
	delete(s.attempts, name)
	r := s.row(at.Key)
	return s.describe(&r), nil
}

func (s *story) event(a args) (*event.Event, error) {
	seq, err1 := event.ParseSequencer(a.text("seq", ""))
	kind, err2 := a.kind("kind", "created")
	when := s.now
	var err3 error
	if a.has("time") {
		when, err3 = a.time("time")
	}
	o := a.key().Object()
	o.VersionID = a.text("version", "")
	return &event.Event{
		Object: o, Kind: kind, Sequencer: seq, Time: when, ETag: a.text("etag", ""),
		Name: map[event.Kind]string{event.Created: "ObjectCreated:Put", event.Removed: "ObjectRemoved:Delete"}[kind],
	}, errors.Join(err1, err2, err3)
}

// observe seq=0055 [kind=removed] [etag=a] [version=v1] [time=9s] [untrusted] [on=..] [at=..]
func (s *story) observe(a args) (string, error) {
	e, err := s.event(a)
	if err != nil {
		return "", err
	}
	r, verdict := s.row(a.key()).Observe(e, !a.has("untrusted"), s.now)
	if verdict != ledger.Raised && verdict != ledger.Disordered {
		return s.unchanged(r, "%s", verdict)
	}
	return s.store(r, "%s", verdict)
}

// raise [kind=removed] [etag=b mtime=..] [on=..] [at=..]
func (s *story) raise(a args) (string, error) {
	kind, err1 := a.kind("kind", "created")
	id, err2 := a.identity()
	if err := errors.Join(err1, err2); err != nil {
		return "", err
	}
	return s.store(s.row(a.key()).Raise(kind, id, s.now), "raised")
}

func (s *story) shape(a args) (string, error) {
	e, err := s.event(a)
	r := s.row(a.key())
	return map[bool]string{true: "changed: alarm", false: "as before"}[r.ChangesShape(e)], err
}

// claim by=w1 [on=..] [at=..]
func (s *story) claim(a args) (string, error) {
	name := a.text("by", "")
	r, at, why := s.row(a.key()).Claim(name, &s.policy, s.now)
	switch why {
	case ledger.Granted:
		s.attempts[name] = &at
		suffix := ""
		if at.TakenOver {
			suffix += ", taken over"
		}
		if at.Verifying {
			suffix += ", to verify"
		}
		return s.store(r, "granted: attempt %d, fence %s%s", at.Number, fence(at.Fence), suffix)
	case ledger.Retired:
		return s.store(r, "retired")
	}
	return s.unchanged(r, "refused: %s", map[ledger.ClaimResult]string{
		ledger.NotDue: "not due", ledger.HeldLive: "held", ledger.IsDead: "dead",
	}[why])
}

// renew by=w1 [at=..]
func (s *story) renew(a args) (string, error) {
	_, at, err := s.attempt(a)
	if err != nil {
		return "", err
	}
	r, ok := s.row(at.Key).Renew(at, &s.policy, s.now)
	if !ok {
		return s.unchanged(r, "refused: another attempt holds the lease")
	}
	return s.store(r, "renewed")
}

// ending parses [read=created etag=.. mtime=.. version=..] [sent] [unsure]. The default read is
// Want as of the claim.
func (s *story) ending(a args, at *ledger.Claim) (*ledger.Ending, error) {
	read, err := s.read(a, at)
	return &ledger.Ending{Read: read, Sent: a.has("sent"), Unsure: a.has("unsure")}, err
}

func (s *story) read(a args, at *ledger.Claim) (ledger.Read, error) {
	if !a.has("read") && !a.has("etag") {
		return ledger.Read{Kind: at.Want.Kind, Identity: ledger.Identity{ETag: at.Want.Identity.ETag}}, nil
	}
	kind, err1 := a.kind("read", "created")
	id, err2 := a.identity()
	return ledger.Read{Kind: kind, Identity: id, ByEvent: a.has("by-event")}, errors.Join(err1, err2)
}

// complete by=w1 [ending] [nothing]
func (s *story) complete(a args) (string, error) {
	_, at, err := s.attempt(a)
	if err != nil {
		return "", err
	}
	e, err := s.ending(a, at)
	if err != nil {
		return "", err
	}
	r, ok := s.row(at.Key).Complete(at, e, !a.has("nothing"), &s.policy, s.now)
	if !ok {
		return s.unchanged(r, "refused: another attempt holds the lease")
	}
	return s.store(r, "completed")
}

// fail by=w1 [ending] [permanent] [after=30s] [jitter=0.5], with the message below
func (s *story) fail(a args) (string, error) {
	_, at, err := s.attempt(a)
	if err != nil {
		return "", err
	}
	e, err1 := s.ending(a, at)
	after, err2 := a.duration("after")
	jitter, err3 := strconv.ParseFloat(a.text("jitter", "0.5"), 64)
	if err := errors.Join(err1, err2, err3); err != nil {
		return "", err
	}
	if !a.has("read") && !a.has("etag") {
		e.Read = ledger.Read{}
	}
	f := &ledger.Failure{Message: a.input, Permanent: a.has("permanent"), After: after}
	r, ok := s.row(at.Key).Fail(at, e, f, jitter, &s.policy, s.now)
	if !ok {
		return s.unchanged(r, "refused: another attempt holds the lease")
	}
	return s.store(r, "failed")
}

// release by=w1 [ending]
func (s *story) release(a args) (string, error) {
	_, at, err := s.attempt(a)
	if err != nil {
		return "", err
	}
	e, err := s.ending(a, at)
	if err != nil {
		return "", err
	}
	r, ok := s.row(at.Key).Release(at, e, &s.policy, s.now)
	if !ok {
		return s.unchanged(r, "refused: another attempt holds the lease")
	}
	return s.store(r, "released")
}

// schedule-verify by=w1 [unsure]
func (s *story) scheduleVerify(a args) (string, error) {
	_, at, err := s.attempt(a)
	if err != nil {
		return "", err
	}
	e, err := s.ending(a, at)
	if err != nil {
		return "", err
	}
	return s.store(s.row(at.Key).ScheduleVerify(e, &s.policy, s.now), "scheduled")
}

// redrive [force] [on=..]
func (s *story) redrive(a args) (string, error) {
	return s.store(s.row(a.key()).Redrive(a.has("force"), s.now), "redriven")
}

// reset-order [on=..]
func (s *story) resetOrder(a args) (string, error) {
	return s.store(s.row(a.key()).ResetOrder(s.now), "reset")
}

// purge [settled] [on=..]
func (s *story) purge(a args) (string, error) {
	r := s.row(a.key())
	p := s.policy
	p.PurgeSettled = a.has("settled")
	if !r.Purgeable(&p, s.now) {
		return "kept", nil
	}
	delete(s.rows, r.RowKey)
	return "dropped", nil
}
