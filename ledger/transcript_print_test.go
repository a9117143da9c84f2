package ledger_test

import (
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/pawlhq/pawl/event"
	"github.com/pawlhq/pawl/ledger"
)

func (s *story) describe(r *ledger.Row) string {
	var b strings.Builder
	line := func(format string, a ...any) { fmt.Fprintf(&b, "  "+format+"\n", a...) }
	due := "never due"
	if at := r.Due(); !at.IsZero() {
		due = "due " + since(at)
	}
	line("%s, %s", r.State(s.now), due)
	line("want %s", version(r.Want))
	line("have %s", version(r.Have))
	switch {
	case r.Held():
		line("lease of %s until %s, fence %s", r.Lease.Owner, since(r.Lease.Until), fence(r.Lease.Fence))
	case r.Lease.Fence != 0:
		line("no lease, fence %s", fence(r.Lease.Fence))
	}
	if r.Doubt {
		line("doubt")
	}
	if r.Forced {
		line("forced")
	}
	if r.Disorder > 0 {
		line("disorder %d", r.Disorder)
	}
	if r.Attempts > 0 {
		line("attempts %d", r.Attempts)
	}
	if !r.RetryAt.IsZero() {
		line("retry at %s", since(r.RetryAt))
	}
	if r.LastError != "" {
		line("error: %s", r.LastError)
	}
	if !r.VerifyAt.IsZero() {
		line("verify at %s", since(r.VerifyAt))
	}
	return b.String()
}

func version(v ledger.Version) string {
	if v.Sequencer.IsZero() && v.Generation == 0 && v.Kind == 0 {
		return "nothing"
	}
	return strings.TrimRight(fmt.Sprintf("%s %s %s", v.Order(), v.Kind, identity(v.Identity)), " ")
}

func identity(i ledger.Identity) string {
	var parts []string
	for _, p := range [][2]string{{"version", i.VersionID}, {"etag", i.ETag}, {"meta", i.Meta}} {
		if p[1] != "" {
			parts = append(parts, p[0]+"="+p[1])
		}
	}
	if !i.ModTime.IsZero() {
		parts = append(parts, "mtime="+since(i.ModTime))
	}
	return strings.Join(parts, " ")
}

func since(t time.Time) string {
	s := t.Sub(epoch).String()
	for _, zero := range []string{"m0s", "h0m"} {
		if strings.HasSuffix(s, zero) {
			s = s[:len(s)-2]
		}
	}
	return s
}

func fence(f int64) string { return fmt.Sprintf("%+d", f-epoch.UnixMilli()) }

var fences = regexp.MustCompile(`fence \d+`)

func (s *story) relative(text string) string {
	return fences.ReplaceAllStringFunc(text, func(m string) string {
		n, err := strconv.ParseInt(m[len("fence "):], 10, 64)
		if err != nil {
			return m
		}
		return "fence " + fence(n)
	})
}

// pinned parses pinned=absent, or source=.. with the modification time of the output's source.
func (s *story) pinned(a args) (*ledger.Pinned, error) {
	switch {
	case a.has("pinned"):
		return &ledger.Pinned{}, nil
	case a.has("source") || a.has("source-mtime"):
		at, err := a.time("source-mtime")
		return &ledger.Pinned{Exists: true, Source: a.text("source", ""), ModTime: at}, err
	}
	return nil, nil
}

// must-act prints the decisions without doubt, with doubt, and forced. had=yes: Have is the version
// that was read.
func (s *story) mustAct(a args) (string, error) {
	kind, err := a.kind("read", "created")
	if err != nil {
		return "", err
	}
	at := ledger.Claim{Verifying: a.has("verifying")}
	r := ledger.Read{Kind: kind, ByEvent: a.has("by-event")}
	if kind == event.Created {
		r.Identity = ledger.Identity{ETag: "a"}
	}
	at.Want = ledger.Version{Generation: 2, Kind: kind}
	switch had := a.text("had", "yes"); had {
	case "yes":
		at.Have = ledger.Version{Generation: 1, Kind: kind, Identity: r.Identity}
		if r.ByEvent {
			at.Have.Generation = 2
		}
	case "other":
		at.Have = ledger.Version{Generation: 1, Kind: event.Created, Identity: ledger.Identity{ETag: "z"}}
	case "nothing":
	default:
		return "", errors.New("had= is yes, other or nothing")
	}
	outputs := []struct {
		name string
		out  *ledger.Pinned
	}{
		{"no output", nil}, {"absent", &ledger.Pinned{}},
		{"made of it", &ledger.Pinned{Exists: true, Source: at.Source(&r)}},
		{"made of other", &ledger.Pinned{Exists: true, Source: "etag=z"}},
		{"not ours", &ledger.Pinned{Exists: true}},
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%-7s", "")
	for _, o := range outputs {
		fmt.Fprintf(&b, "%-14s ", o.name)
	}
	for i, row := range []string{"", "doubt", "forced"} {
		at.Doubt, at.Forced = i == 1, i == 2
		fmt.Fprintf(&b, "\n%-7s", row)
		for _, o := range outputs {
			fmt.Fprintf(&b, "%-14s ", map[bool]string{true: "act", false: "-"}[at.MustAct(&r, o.out)])
		}
	}
	return trimLines(b.String()), nil
}

func trimLines(text string) string {
	lines := strings.Split(text, "\n")
	for i := range lines {
		lines[i] = strings.TrimRight(lines[i], " ")
	}
	return strings.Join(lines, "\n")
}

// not-found-delay by=w1 [source-mtime=..] [at=..]
func (s *story) notFoundDelay(a args) (string, error) {
	_, at, err := s.attempt(a)
	if err != nil {
		return "", err
	}
	out, err := s.pinned(a)
	return map[bool]string{true: "too early: check again", false: "removed"}[at.NotFoundDelay(out, s.now) > 0], err
}

func (s *story) idempotencyKey(a args) (string, error) {
	_, at, err := s.attempt(a)
	if err != nil {
		return "", err
	}
	read, err := s.read(a, at)
	return at.IdempotencyKey(&read)[:8], err
}
