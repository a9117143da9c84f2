package lock

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"
)

// TestTranscripts compares lease transitions with testdata/transitions. After a change, run
//
//	go test ./lock -run TestTranscripts -rewrite
//
// and read the difference. Times are relative to epoch. In tokens, T stands for epoch in microseconds. The
// nonces n1, n2 … follow the order of the writes.
func TestTranscripts(t *testing.T) {
	datadriven.Walk(t, "testdata/transitions", func(t *testing.T, path string) {
		s := &transcript{}
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			t.Helper()
			out, err := s.run(d)
			if err != nil {
				d.Fatalf(t, "%v", err)
			}
			return out
		})
	})
}

type transcript struct {
	now    version
	writes int
}

func (s *transcript) nonce() string {
	s.writes++
	return fmt.Sprintf("n%d", s.writes)
}

func (s *transcript) run(d *datadriven.TestData) (string, error) {
	at, err := time.ParseDuration(argText(d, "at", "0s"))
	if err != nil {
		return "", err
	}
	clock := epoch.Add(at)
	ttl, err := time.ParseDuration(argText(d, "ttl", "30s"))
	if err != nil {
		return "", err
	}
	holder := Record{Owner: argText(d, "by", ""), Reason: argText(d, "reason", ""), Host: "host", PID: 1, TTL: ttl.Milliseconds()}
	r := &s.now.rec
	switch d.Cmd {
	case "reset":
		*s = transcript{}
		return "", nil
	case "stored":
		return strings.TrimSpace(string(r.encode())), nil
	case "read":
		return decodeText(d.Input), nil
	case "classify":
		return s.classify(d), nil
	case "classify-update":
		return runClassifyUpdate(d)
	case "first":
		*r = first(&holder, s.nonce(), clock)
	case "acquire":
		*r = r.acquired(&holder, s.nonce(), clock)
	case "renew":
		n, err := strconv.Atoi(argText(d, "times", "1"))
		if err != nil {
			return "", err
		}
		for range n {
			*r = r.renewed(s.nonce())
		}
	case "release":
		*r = r.released(s.nonce(), clock)
	case "force":
		*r = r.forced(s.nonce(), clock)
	default:
		return "", fmt.Errorf("unknown command %q", d.Cmd)
	}
	return formatRecord(r), nil
}

// The argument is name=value, or name=(value,value).
func argument(d *datadriven.TestData, name string) (datadriven.CmdArg, bool) {
	i := slices.IndexFunc(d.CmdArgs, func(a datadriven.CmdArg) bool { return a.Key == name })
	if i < 0 {
		return datadriven.CmdArg{}, false
	}
	return d.CmdArgs[i], true
}

func argText(d *datadriven.TestData, name, otherwise string) string {
	if arg, ok := argument(d, name); ok {
		return strings.Join(arg.Vals, " ")
	}
	return otherwise
}

func formatRecord(r *Record) string {
	out := fmt.Sprintf("%s, token %s, by %s", r.State, token(r.Token), cmp.Or(r.Owner, "no owner"))
	if r.Reason != "" {
		out += ": " + r.Reason
	}
	out += fmt.Sprintf("\n  since %v, ttl %v", r.Since.Sub(epoch), r.ttl())
	out += fmt.Sprintf("\n  nonce %s, before: %s", r.Nonce, strings.Join(r.Before, " "))
	return strings.TrimSuffix(out, " ")
}

func token(n int64) string {
	switch n -= epoch.UnixMicro(); n {
	case 0:
		return "T"
	default:
		return fmt.Sprintf("T%+d", n)
	}
}

func decodeText(content string) string {
	rec, err := decode([]byte(content))
	if err != nil {
		return err.Error()
	}
	return formatRecord(&rec)
}

// classify wrote=n2 [on=n1] [now=(n3,n2,n1)]: now lists the stored nonce and the earlier ones.
func (s *transcript) classify(d *datadriven.TestData) string {
	return classify(versionArg(d, "now"), versionArg(d, "on"), argText(d, "wrote", "")).String()
}

func versionArg(d *datadriven.TestData, name string) version {
	arg, ok := argument(d, name)
	if !ok {
		return version{}
	}
	return version{exists: true, rec: Record{Nonce: arg.Vals[0], Before: arg.Vals[1:]}}
}

// classify-update wrote=x [on=(b,a)] [now=(x,b,a)]: on and now are the ids in the metadata, newest
// first. Their number is the number of updates, unless count or now-count is set. foreign is an
// object of another program. The ETag depends on the ids.
func runClassifyUpdate(d *datadriven.TestData) (string, error) {
	base, err := snapshotArg(d, "on", "count")
	if err != nil {
		return "", err
	}
	now, err := snapshotArg(d, "now", "now-count")
	if err != nil {
		return "", err
	}
	var out []string
	for _, refused := range []bool{true, false} {
		f, known := classifyUpdate(now, base, argText(d, "wrote", ""), refused)
		says := f.String()
		if !known {
			says = "not known"
		}
		out = append(out, says)
	}
	if out[0] == out[1] {
		return out[0], nil
	}
	return fmt.Sprintf("if refused: %s\nwithout an answer: %s", out[0], out[1]), nil
}

func snapshotArg(d *datadriven.TestData, name, countName string) (snapshot, error) {
	arg, ok := argument(d, name)
	if !ok {
		return snapshot{}, nil
	}
	s := snapshot{exists: true, etag: fmt.Sprint(arg.Vals)}
	if slices.Equal(arg.Vals, []string{"foreign"}) {
		return s, nil
	}
	var err error
	s.ids = arg.Vals
	s.count, err = strconv.ParseInt(argText(d, countName, strconv.Itoa(len(s.ids))), 10, 64)
	return s, err
}
