package awslambda

import (
	"bytes"
	"encoding/json"
	"maps"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"github.com/pawlhq/pawl"
	"github.com/pawlhq/pawl/engine"
)

const (
	metricsNamespace = "Pawl"
	maxValues        = 100 // of a metric in a line; CloudWatch rejects more
)

// counted has the metric of each kind of notice that adds 1 to one, or N.
var counted = map[engine.Kind]struct {
	name string
	n    bool
}{
	engine.Raised: {"EventsRaised", false}, engine.Duplicate: {"EventsDuplicate", false}, engine.Stale: {"EventsStale", false},
	engine.Unmatched: {"EventsUnmatched", true}, engine.Disordered: {"EventsDisordered", false}, engine.ShapeChanged: {"SequencerChanges", false},
	engine.Acknowledged: {"MessagesAcknowledged", false}, engine.Returned: {"MessagesReturned", false},
	engine.Committed: {"AttemptsCommitted", false}, engine.NothingToDo: {"AttemptsNothingToDo", false}, engine.AttemptFailed: {"AttemptsFailed", false},
	engine.AttemptUncounted: {"AttemptsUncounted", false}, engine.AttemptReleased: {"AttemptsReleased", false}, engine.LostLease: {"AttemptsLostLease", false},
	engine.AttemptAbandoned: {"AttemptsAbandoned", false},
	engine.Died:             {"Deaths", false}, engine.TookOver: {"Takeovers", false}, engine.ReceiverDown: {"Outages", false}, engine.Unreadable: {"UnreadableRows", false},
	engine.RowsWritten: {"RowsWritten", true}, engine.RowsRefused: {"RowsRefused", true},
	engine.LossFound: {"AuditLosses", false}, engine.LossRepaired: {"AuditRepaired", false}, engine.RemovalsWithheld: {"AuditRemovalsWithheld", true},
	engine.Audited: {"Audits", false}, engine.AuditFailed: {"AuditFailures", false},
}

// timed has the metric of each kind of notice that ends a duration.
var timed = map[engine.Kind]string{
	engine.Committed: "AttemptDuration", engine.AttemptFailed: "AttemptDuration", engine.Died: "AttemptDuration", engine.Claimed: "AttemptWait",
	engine.RowsWritten: "LedgerSwapDuration", engine.Audited: "AuditDuration",
}

// invocationMetrics collects the notices of one invocation, and writes them in the embedded metric format:
// https://docs.aws.amazon.com/AmazonCloudWatch/latest/monitoring/CloudWatch_Embedded_Metric_Format_Specification.html
type invocationMetrics struct {
	next pawl.Observer // optional

	mu  sync.Mutex
	all map[string]*facts // by pipeline; "" has those without one
}

type facts struct {
	counts  map[string]int
	seconds map[string][]float64
	seen    map[string]int // number of durations, including those that exceed maxValues
}

func newInvocationMetrics(next pawl.Observer) *invocationMetrics {
	m := &invocationMetrics{next: next, all: map[string]*facts{}}
	m.of("").counts["Invocations"] = 1
	return m
}

func (m *invocationMetrics) of(pipeline string) *facts {
	if m.all[pipeline] == nil {
		m.all[pipeline] = &facts{counts: map[string]int{}, seconds: map[string][]float64{}, seen: map[string]int{}}
	}
	return m.all[pipeline]
}

// Observe implements [pawl.Observer].
func (m *invocationMetrics) Observe(n pawl.Notice) {
	if m.next != nil {
		m.next.Observe(n)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if c, ok := counted[n.Kind]; ok {
		by := 1
		if c.n {
			by = n.N
		}
		m.of(n.Key.Pipeline).counts[c.name] += by
	}
	if n.Kind == engine.Died {
		m.of(n.Key.Pipeline).counts["AttemptsFailed"]++
	}
	if name, ok := timed[n.Kind]; ok && (n.Kind != engine.Died || n.Took > 0) { // otherwise no attempt ran
		m.of(n.Key.Pipeline).add(name, n.Took)
	}
	if n.Behind > 0 {
		m.of(n.Key.Pipeline).add("Convergence", n.Behind)
	}
}

// add keeps a random sample of the durations.
func (f *facts) add(name string, took time.Duration) {
	f.seen[name]++
	if len(f.seconds[name]) < maxValues {
		f.seconds[name] = append(f.seconds[name], took.Seconds())
	} else if at := rand.N(f.seen[name]); at < maxValues {
		f.seconds[name][at] = took.Seconds()
	}
}

type metricDefinition struct{ Name, Unit string }

type metricDirective struct {
	Namespace  string
	Dimensions [][]string
	Metrics    []metricDefinition
}

// addTo adds the values to the root node of a line, and returns their definition.
func (f *facts) addTo(root map[string]any, dimensions ...string) metricDirective {
	d := metricDirective{Namespace: metricsNamespace, Dimensions: [][]string{append([]string{}, dimensions...)}}
	for _, name := range slices.Sorted(maps.Keys(f.counts)) {
		root[name] = f.counts[name]
		d.Metrics = append(d.Metrics, metricDefinition{name, "Count"})
	}
	for _, name := range slices.Sorted(maps.Keys(f.seconds)) {
		root[name] = f.seconds[name]
		d.Metrics = append(d.Metrics, metricDefinition{name, "Seconds"})
	}
	return d
}

// lines returns one line, or one for each pipeline that has facts, because a line has one value per dimension.
// Call it once.
func (m *invocationMetrics) lines(now time.Time) ([]byte, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	var b bytes.Buffer
	common := m.all[""]
	delete(m.all, "")
	names := slices.Sorted(maps.Keys(m.all))
	for i := range max(len(names), 1) {
		root := map[string]any{}
		var directives []metricDirective
		if i == 0 {
			directives = append(directives, common.addTo(root))
		}
		if i < len(names) {
			root["pipeline"] = names[i]
			directives = append(directives, m.all[names[i]].addTo(root, "pipeline"))
		}
		root["_aws"] = map[string]any{"Timestamp": now.UnixMilli(), "CloudWatchMetrics": directives}
		if err := json.NewEncoder(&b).Encode(root); err != nil {
			return nil, err
		}
	}
	return b.Bytes(), nil
}
