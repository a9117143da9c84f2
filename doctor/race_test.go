package doctor

import (
	"errors"
	"testing"

	"github.com/pawlhq/pawl/cell"
)

func TestJudgeRace(t *testing.T) {
	const landed, lost, unclear = cell.Landed, cell.Lost, cell.Unclear
	for _, tc := range []struct {
		name    string
		answers []cell.Outcome
		now     int
		decided bool
		verdict Verdict
	}{
		{"one won", []cell.Outcome{lost, landed, unclear}, 1, true, OK},
		{"one won, without an answer", []cell.Outcome{lost, unclear, unclear}, 2, true, OK},
		{"one won, and a copy of it was refused", []cell.Outcome{lost, lost, unclear}, 0, true, OK},
		{"no winner", []cell.Outcome{unclear, lost, unclear}, -1, false, OK},
		{"two won", []cell.Outcome{landed, landed, lost}, 1, false, Ignored},
		{"a second one landed, without an answer", []cell.Outcome{landed, unclear, lost}, 1, false, Ignored},
		{"a refused one landed", []cell.Outcome{landed, unclear, lost}, 2, false, Failed},
		{"the winner did not land", []cell.Outcome{landed, unclear, lost}, -1, false, Failed},
	} {
		decided, err := judgeRace(tc.answers, tc.now)
		verdict := OK
		if f, ok := errors.AsType[*flaw](err); ok {
			verdict = f.verdict
		}
		if decided != tc.decided || verdict != tc.verdict {
			t.Errorf("%s: %v, %s (%v), want %v, %s", tc.name, decided, verdict, err, tc.decided, tc.verdict)
		}
	}
}

// A reading is harmless if no write with If-Match and its ETag can succeed.
func TestJudgeReadings(t *testing.T) {
	revisions := map[string]int{"e0": 0, "e1": 1, "e2": 2}
	for _, tc := range []struct {
		name string
		text string
		etag string
		ok   bool
	}{
		{"its own", revision(1), "e1", true},
		{"newer", revision(2), "e1", true},
		{"newer, cut off", revision(2)[:100], "e1", true},
		{"newer, after some of its own", revision(1)[:900] + revision(2)[900:], "e1", true},
		{"older", revision(0), "e1", false},
		{"its own, cut off", revision(1)[:900], "e1", false},
		{"its own, after some of an older", revision(0)[:900] + revision(1)[900:], "e1", false},
		{"nothing", "", "e1", false},
		{"something else", "x", "e1", false},
		{"an unknown ETag", revision(1), "e9", false},
	} {
		newest, whole := parseRevision(tc.text)
		_, err := judgeReadings([]readings{{seen: map[reading]int{{tc.etag, newest, whole}: 1}}}, revisions)
		if (err == nil) != tc.ok {
			t.Errorf("%s: %v", tc.name, err)
		}
	}
	note, err := judgeReadings([]readings{{cut: 2}, {cut: 1}}, revisions)
	if err != nil || note != "3 reads during overwrites broke off" {
		t.Errorf("%q, %v", note, err)
	}
}
