package webhooksource_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pawlhq/pawl/event"
	"github.com/pawlhq/pawl/source/sourcetest"
	"github.com/pawlhq/pawl/source/webhooksource"
)

func TestEachRejectionIsLogged(t *testing.T) {
	var log bytes.Buffer
	e := serve(t, webhooksource.Config{Logger: slog.New(slog.NewJSONHandler(&log, nil))}, ackAll{})
	wrong := strings.Replace(payload, "0055AED6", "0055XYZ6", 1)
	for range 2 {
		post(t, e.url, wrong)
		post(t, e.url, `{"Records":[],"x":1}`)
		post(t, e.url, `{"Records":1}`)
		post(t, e.url, manyRecords(event.MaxRecords+1))
		post(t, e.url, payload, "Content-Encoding", "gzip")
		post(t, e.url, payload, "Sec-Fetch-Site", "cross-site")
	}
	e.cancel()
	sourcetest.Wait(t, e.ended, "the end of Run")
	type line struct {
		Level, Reason, Payload string
		Status, Bytes          int
	}
	var got []string
	for text := range strings.Lines(log.String()) {
		var l line
		if err := json.Unmarshal([]byte(text), &l); err != nil {
			t.Fatal(err)
		}
		if l.Level == "WARN" {
			got = append(got, fmt.Sprintf("%d %d %.30s", l.Status, l.Bytes, l.Payload))
		}
		if strings.Contains(l.Reason, "hexadecimal") && !strings.Contains(l.Reason, "s3://photos/in/a.jpg: ") {
			t.Errorf("reason %q does not name the object", l.Reason)
		}
	}
	want := []string{
		fmt.Sprintf("400 %d %.30s", len(wrong), wrong),
		`400 20 {"Records":[],"x":1}`,
		fmt.Sprintf("413 %d %.30s", len(manyRecords(event.MaxRecords+1)), manyRecords(1)),
		"415 0 ", "403 0 ",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}
