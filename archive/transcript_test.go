package archive

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"
)

// After a change, review the differences:
//
//	go test ./archive -run TestTranscripts -rewrite
func TestTranscripts(t *testing.T) {
	paths, err := filepath.Glob("testdata/*.txt")
	if err != nil || len(paths) == 0 {
		t.Fatalf("%d transcripts, %v", len(paths), err)
	}
	for _, path := range paths {
		t.Run(filepath.Base(path), func(t *testing.T) {
			var p Progress
			datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
				t.Helper()
				next, err := transition(t, p, d)
				if err != nil {
					return "refused: " + err.Error() + "\n"
				}
				again, err := decodeProgress(encodeJSON(next))
				if err != nil {
					t.Fatal(err)
				}
				p = again
				return describe(&p)
			})
		})
	}
}

func transition(t *testing.T, p Progress, d *datadriven.TestData) (Progress, error) {
	t.Helper()
	var owner, end, start string
	var fence, generation, n int64
	var recovering, behind bool
	for name, to := range map[string]any{
		"by": &owner, "fence": &fence, "generation": &generation, "recovering": &recovering, "n": &n, "behind": &behind, "start": &start, "end": &end,
	} {
		if d.HasArg(name) {
			d.ScanArgs(t, name, to)
		}
	}
	switch d.Cmd {
	case "own":
		return p.TakeOwnership(owner, fence, generation, recovering)
	case "announce":
		return p.Announce(intentOf(t, d.Input))
	case "commit":
		return p.Commit(), nil
	case "abandon":
		return p.Abandon(int(n), behind), nil
	case "skip":
		return p.SkipStored(StoredRange{Range: Range{Number(start), Number(end)}, Format: "json"}), nil
	case "recovered":
		return p.EndRecovery(), nil
	case "finish":
		return p.Finish(), nil
	}
	t.Fatalf("no command %s", d.Cmd)
	return p, nil
}

// intentOf parses lines of start, end, first record or "gap", and minutes after midnight.
func intentOf(t *testing.T, text string) (i Intent) {
	t.Helper()
	for line := range strings.Lines(text) {
		var o Planned
		var minutes int
		if _, err := fmt.Sscan(line, &o.Start, &o.End, &o.First, &minutes); err != nil {
			t.Fatalf("%q: %v", line, err)
		}
		o.Format, o.Arrival = "json", time.Date(2026, 1, 1, 0, minutes, 0, 0, time.UTC)
		if o.First == "gap" {
			o.Format, o.First, o.Anchor = GapFormat, "", o.End.after()
		}
		i.Objects = append(i.Objects, o)
	}
	return i
}

func describe(p *Progress) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s, owner %s, fence %d, generation %d\n", p.State, p.Owner, p.Fence, p.Generation)
	if p.Committed != "" {
		fmt.Fprintf(&b, "  stored: above %s, up to %s, latest arrival %s\n  reading resumes at %s\n", p.Start, p.Committed, p.Arrival.Format("15:04"), p.Anchor)
	} else if p.Anchor != "" {
		fmt.Fprintf(&b, "  reading starts at %s\n", p.Anchor)
	}
	if p.Intent != nil {
		for _, o := range p.Intent.Objects {
			fmt.Fprintf(&b, "  announced: %s %s\n", o.Range, o.Format)
		}
	}
	return b.String()
}
