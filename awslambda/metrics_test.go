package awslambda_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/pawlhq/pawl"
	"github.com/pawlhq/pawl/engine"
	"github.com/pawlhq/pawl/event"
	"github.com/pawlhq/pawl/internal/virtualtime"
	"github.com/pawlhq/pawl/source/sourcetest"
)

// metricLine is one line as CloudWatch reads it.
type metricLine struct {
	pipeline string
	common   map[string][]float64 // without a dimension
	own      map[string][]float64 // of the pipeline
}

// parseMetrics checks the limits of the embedded metric format.
func parseMetrics(t *testing.T, text string) (all []metricLine) {
	t.Helper()
	for line := range strings.Lines(text) {
		var root map[string]json.RawMessage
		var head struct {
			Timestamp         int64
			CloudWatchMetrics []struct {
				Namespace  string
				Dimensions [][]string
				Metrics    []struct{ Name, Unit string }
			}
		}
		if err := errors.Join(json.Unmarshal([]byte(line), &root), json.Unmarshal(root["_aws"], &head)); err != nil {
			t.Fatalf("%v in the line %s", err, line)
		}
		if at := time.UnixMilli(head.Timestamp); time.Since(at).Abs() > time.Hour || len(line) > 256<<10 {
			t.Errorf("the time of the line is %v, and its length %d", at, len(line))
		}
		one := metricLine{common: map[string][]float64{}, own: map[string][]float64{}}
		members := 1
		for _, d := range head.CloudWatchMetrics {
			values := one.common
			if len(d.Dimensions) != 1 || len(d.Dimensions[0]) > 1 || d.Namespace != "Pawl" || len(d.Metrics) > 100 {
				t.Fatalf("invalid directive %+v", d)
			}
			if len(d.Dimensions[0]) == 1 {
				values = one.own
				members++
				if err := json.Unmarshal(root[d.Dimensions[0][0]], &one.pipeline); err != nil || one.pipeline == "" || d.Dimensions[0][0] != "pipeline" {
					t.Errorf("dimensions %v, pipeline %q (%v)", d.Dimensions, one.pipeline, err)
				}
			}
			for _, m := range d.Metrics {
				members++
				v := make([]float64, 1)
				if json.Unmarshal(root[m.Name], &v[0]) != nil {
					if err := json.Unmarshal(root[m.Name], &v); err != nil || len(v) == 0 || len(v) > 100 || m.Unit != "Seconds" {
						t.Errorf("metric %+v has the value %s", m, root[m.Name])
					}
				}
				values[m.Name] = v
			}
		}
		if members != len(root) {
			t.Errorf("the line has %d members, want %d: %s", len(root), members, line)
		}
		all = append(all, one)
	}
	return all
}

// An invocation with two pipelines, of which one fails, and an idle sweep.
func TestInvocationsWriteMetrics(t *testing.T) {
	virtualtime.Test(t, func(t *testing.T) {
		f := newFunction(t, func(context.Context, *pawl.Task) error { time.Sleep(time.Second); return nil })
		failing := f.Config.Pipelines[0]
		failing.Name, failing.Handler = "broken", pawl.HandlerFunc(func(context.Context, *pawl.Task) error { return pawl.Permanent(errors.New("broken")) })
		f.Config.Pipelines = append(f.Config.Pipelines, failing)
		var out bytes.Buffer
		f.Metrics = &out
		if err := f.invoke(`{"pawl":"sweep"}`); err != nil {
			t.Fatal(err)
		}
		lines := parseMetrics(t, out.String())
		if len(lines) != 1 || lines[0].pipeline != "" || lines[0].common["Invocations"][0] != 1 {
			t.Errorf("a sweep without work wrote %+v", lines)
		}
		out.Reset()
		if err := f.invoke(strings.Replace(sourcetest.Payload("a"), "2026", "1999", 1)); err != nil { // before the virtual time
			t.Fatal(err)
		}
		lines = parseMetrics(t, out.String())
		if len(lines) != 2 || lines[0].pipeline != "broken" || lines[1].pipeline != "tell" {
			t.Fatalf("wrote %+v", lines)
		}
		for _, c := range []struct {
			name   string
			values map[string][]float64
			want   float64
		}{
			{"Invocations", lines[0].common, 1},
			{"MessagesAcknowledged", lines[0].common, 1},
			{"EventsRaised", lines[0].own, 1},
			{"Deaths", lines[0].own, 1},
			{"AttemptsFailed", lines[0].own, 1},
			{"EventsRaised", lines[1].own, 1},
			{"AttemptsCommitted", lines[1].own, 1},
			{"AttemptDuration", lines[1].own, 1},
		} {
			if got := c.values[c.name]; len(got) != 1 || got[0] != c.want {
				t.Errorf("%s is %v, want %g", c.name, got, c.want)
			}
		}
		if len(lines[1].common) > 0 || lines[1].own["Convergence"] == nil || lines[1].own["Deaths"] != nil {
			t.Errorf("the line of the second pipeline has %+v", lines[1])
		}
	})
}

// The line of an invocation with more than 100 durations has 100 of them, and the caller's Observer has all notices.
func TestMetricsOfALargeInvocation(t *testing.T) {
	virtualtime.Test(t, func(t *testing.T) {
		f := newFunction(t, func(context.Context, *pawl.Task) error { return nil })
		const objects = 150
		records := make([]string, objects)
		for i := range records {
			inner := strings.TrimSuffix(strings.TrimPrefix(sourcetest.Payload(string(rune('A'+i%26))+strings.Repeat("x", i)), `{"Records":[`), `]}`)
			records[i] = strings.Replace(inner, "ObjectCreated:Put", "ObjectRemoved:Delete", 1)
		}
		var out bytes.Buffer
		seen := &counter{}
		f.Metrics, f.Config.Observer, f.Dialect = &out, seen, event.AWS
		if err := f.invoke(`{"Records":[` + strings.Join(records, ",") + `]}`); err != nil {
			t.Fatal(err)
		}
		lines := parseMetrics(t, out.String())
		if len(lines) != 1 || lines[0].own["EventsRaised"][0] != objects || len(lines[0].own["AttemptWait"]) != 100 || seen.raised != objects {
			t.Errorf("the observer has %d events; wrote %+v", seen.raised, lines)
		}
	})
}

type counter struct{ raised int }

func (c *counter) Observe(n pawl.Notice) {
	if n.Kind == engine.Raised {
		c.raised++
	}
}
