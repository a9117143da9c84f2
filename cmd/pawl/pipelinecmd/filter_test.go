package pipelinecmd

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/pawlhq/pawl/ledger"
)

func TestSelection(t *testing.T) {
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	row := ledger.Row{
		RowKey: ledger.RowKey{Pipeline: "p", Bucket: "b", Key: "in/k"}, Dead: true,
		UpdatedAt: now.Add(-time.Hour), LastError: "Access Denied",
	}
	for _, test := range []struct {
		name string
		f    rowFilter
		want bool
	}{
		{"all", rowFilter{}, true},
		{"state", rowFilter{states: []string{"failed", "dead"}}, true},
		{"other state", rowFilter{states: []string{"failed"}}, false},
		{"other pipeline", rowFilter{pipeline: "q"}, false},
		{"prefix", rowFilter{prefix: "in/"}, true},
		{"prefix in its bucket", rowFilter{prefix: "s3://b/in/"}, true},
		{"prefix in another bucket", rowFilter{prefix: "s3://c/in/"}, false},
		{"other prefix", rowFilter{prefix: "out/"}, false},
		{"older", rowFilter{older: 59 * time.Minute}, true},
		{"not older", rowFilter{older: time.Hour}, false},
		{"newer", rowFilter{newer: time.Hour}, true},
		{"not newer", rowFilter{newer: 59 * time.Minute}, false},
		{"error in any case", rowFilter{failure: "ACCESS d"}, true},
		{"other error", rowFilter{failure: "gone"}, false},
	} {
		t.Run(test.name, func(t *testing.T) {
			s, err := test.f.selection(now)
			if err != nil {
				t.Fatal(err)
			}
			if s.matches(&row) != test.want {
				t.Errorf("selected %v", !test.want)
			}
		})
	}
}

func TestPagesOfRows(t *testing.T) {
	v := &ledgerReader{Store: deadRows(t, 7)}
	odd := deadRows(t, 1)
	for row := range odd.Scan(t.Context(), ledger.Range{}) {
		for _, pipeline := range []string{"a", "p", "q"} {
			for _, key := range []string{"k\"\\\n", "k?versionId=", "z z", "\xff"} {
				row.Pipeline, row.Key, row.Nonce[0] = pipeline, key, row.Nonce[0]+1
				if _, err := v.Swap(t.Context(), []ledger.Change{{Key: row.RowKey, Row: &row}}); err != nil {
					t.Fatal(err)
				}
			}
		}
	}
	sel, err := (&rowFilter{}).selection(time.Now())
	if err != nil {
		t.Fatal(err)
	}
	all := func(name string, limit int) (got []string) {
		after, err := parseAfter(name)
		if err != nil {
			t.Fatal(err)
		}
		for row, err := range v.selected(t.Context(), sel, after) {
			if err != nil {
				t.Fatal(err)
			}
			if got = append(got, rowName(row.RowKey)); len(got) == limit {
				break
			}
		}
		return got
	}
	want := all("", 0)
	if len(want) != 19 {
		t.Fatalf("%d rows", len(want))
	}
	var got []string
	for last := ""; ; last = got[len(got)-1] {
		page := all(last, 2)
		if len(page) == 0 {
			break
		}
		got = slices.Concat(got, page)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if _, err := parseAfter("nothing"); err == nil || !strings.Contains(err.Error(), "--after") {
		t.Errorf("%v", err)
	}
}
