package audit

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestStoredReportKeepsFieldNames(t *testing.T) {
	at := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	want := Report{
		Started: at, Ended: at.Add(time.Second), By: "host/1", Listing: "list", Prefix: "in/", SettleWindow: "1h", DryRun: true,
		Outputs: true, Resumed: 1, Ranges: 2, Pipelines: []PipelineReport{{Name: "copy"}},
	}
	for i, n := range want.Pipelines[0].fields() {
		*n = int64(i + 1)
	}
	text, err := json.Marshal(registerReport(want))
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"truth", "looked", "young", "passed_over", "unseen"} {
		if !strings.Contains(string(text), `"`+name+`":`) {
			t.Errorf("no field %s in %s", name, text)
		}
	}
	var got registerReport
	if err := json.Unmarshal(text, &got); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, Report(got)); diff != "" {
		t.Errorf("stored report (-want +got):\n%s", diff)
	}
}
