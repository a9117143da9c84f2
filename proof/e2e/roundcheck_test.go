//go:build unix

package e2e

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/pawlhq/pawl/event"
	"github.com/pawlhq/pawl/ledger"
)

func (r *round) check(t *testing.T) {
	t.Helper()
	bad, _, err := unsettled(t.Context(), r.ledger)
	if err != nil {
		t.Fatal(err)
	}
	wrong, err := r.buckets.outputDiffs(t.Context(), r.ledger, "up/", strings.ToUpper)
	if err != nil {
		t.Fatal(err)
	}
	bad = slices.Concat(bad, wrong, r.journal.violations(), r.receiver.malformed, r.effectViolations(), r.missingEvents(t))
	for _, what := range bad[:min(len(bad), 10)] {
		t.Error(what)
	}
	if len(bad) > 10 {
		t.Errorf("and %d more", len(bad)-10)
	}
	// The store may delay these notifications.
	eventually(t, time.Minute, func(context.Context) ([]string, error) { return r.outputViolations() })
	r.progress(t, "checked")
}

// A fencing receiver must end with the content of the bucket, after one effect per content.
func (r *round) effectViolations() (bad []string) {
	effects := r.receiver.byKey()
	for key, puts := range r.buckets.puts {
		l := r.history(pipelineTell, key)
		wrong := effectViolations(l, effects[key], puts)
		acts, _, _ := fencingReceiver(effects[key])
		acted := map[string]bool{}
		for _, e := range acts {
			if e.Kind == event.Created && acted[e.ETag] {
				wrong = append(wrong, e.String()+", and a fencing receiver accepts it twice")
			}
			acted[e.ETag] = true
		}
		_, exists := r.buckets.want[key]
		switch n := len(acts); {
		case exists && (n == 0 || acts[n-1].ETag != puts[len(puts)-1]):
			wrong = append(wrong, fmt.Sprintf("%q: the receiver was not called for its last content", key))
		case !exists && n > 0 && acts[n-1].Kind != event.Removed:
			wrong = append(wrong, fmt.Sprintf("%q: the receiver was not called for its removal", key))
		}
		if len(wrong) > 0 {
			bad = append(bad, strings.Join(wrong, "\n")+"\n"+l.String()+"\nchanges:"+r.buckets.changesOf(key)+fmt.Sprintf("\neffects: %v\nfaults: %v", effects[key], r.fleet.injected))
		}
	}
	return bad
}

func (r *round) outputViolations() (bad []string, err error) {
	if r.server.Name != "minio" {
		return nil, nil // versitygw does not report metadata
	}
	all, err := parseOutputChanges(r.relay.aboutOutputs(), "up/")
	if err != nil {
		return nil, err
	}
	r.lateWrites = 0
	for key, puts := range r.buckets.puts {
		l := r.history(pipelineUpper, key)
		wrong, late := outputViolations(l, all[key], puts)
		r.lateWrites += late
		if len(wrong) > 0 {
			bad = append(bad, strings.Join(wrong, "\n")+"\n"+l.String()+fmt.Sprintf("\nwrites: %v", all[key]))
		}
	}
	return bad, nil
}

func (r *round) history(pipeline, key string) *rowHistory {
	k := ledger.RowKey{Pipeline: pipeline, Bucket: inputs, Key: key}
	if l := r.journal.histories[k]; l != nil {
		return l
	}
	return &rowHistory{key: k}
}

func (r *round) missingEvents(t *testing.T) (bad []string) {
	t.Helper()
	rows := map[ledger.RowKey]ledger.Row{}
	for row, err := range r.ledger.Scan(t.Context(), ledger.Range{}) {
		if err != nil {
			t.Fatal(err)
		}
		rows[row.RowKey] = row
	}
	for _, e := range r.relay.acked {
		if e.Object.Bucket != inputs {
			continue
		}
		for _, p := range pipelines {
			row, ok := rows[ledger.RowKey{Pipeline: p, Bucket: e.Object.Bucket, Key: e.Object.Key}]
			if !ok || row.EventTime.Before(e.Time) {
				bad = append(bad, fmt.Sprintf("%s of %s was acknowledged, but %s has not recorded it", e.Name, e.Object, p))
			}
		}
	}
	return bad
}
