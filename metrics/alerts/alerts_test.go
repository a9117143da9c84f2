package alerts

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pawlhq/pawl/event"
	"github.com/pawlhq/pawl/internal/virtualtime"
	"github.com/pawlhq/pawl/ledger"
	"github.com/pawlhq/pawl/metrics"
	"github.com/pawlhq/pawl/proof/servertest"
	"github.com/pawlhq/pawl/store"
	"github.com/pawlhq/pawl/store/memory"
)

type receiver struct {
	servertest.AlertReceiver
	down     bool
	accepted func() // called for each message
}

// RoundTrip makes the receiver a transport, because network I/O stops the clock of a bubble.
func (r *receiver) RoundTrip(req *http.Request) (*http.Response, error) {
	w := httptest.NewRecorder()
	if r.down {
		w.WriteHeader(http.StatusServiceUnavailable)
		return w.Result(), nil
	}
	if r.ServeHTTP(w, req); r.accepted != nil {
		r.accepted()
	}
	return w.Result(), nil
}

func (r *receiver) expect(t *testing.T, what string, want ...string) {
	t.Helper()
	for i := range want {
		want[i] = "/ " + want[i]
	}
	if got := r.Take(); !slices.Equal(got, want) {
		t.Errorf("%s: messages %q, want %q", what, got, want)
	}
}

func newAlerts(t *testing.T, r *receiver, records store.Store, name string) *Alerts {
	t.Helper()
	a, err := New(Config{
		URL: "http://receiver.test/?token=hush", Secret: servertest.AlertsSecret, Name: name, Ledger: ledger.NewRows(records),
		Logger: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		t.Fatal(err)
	}
	a.client.Transport = r
	return a
}

func (a *Alerts) checkLasting(ctx context.Context, lasting ...alert) {
	own := func(about *alert) bool { return about.Subject != "other" || len(lasting) > 0 }
	a.check(ctx, own, func(context.Context, *state) ([]alert, error) { return lasting, nil })
}

func TestMessagesOfAnAlert(t *testing.T) {
	dead := alert{Condition: "dead", Kind: "pipeline", Subject: "p", Summary: "x"}
	kept, other := dead, dead
	kept.onlyIfBegun, other.Subject = true, "other"
	for name, steps := range map[string][]struct {
		after   time.Duration
		down    bool
		lasting []alert
		want    []string
	}{
		"it begins, lasts and ends": {
			{0, false, nil, nil},
			{0, false, []alert{dead}, []string{"began dead pipeline p"}},
			{59 * time.Minute, false, []alert{dead}, nil},
			{time.Minute, false, []alert{dead}, []string{"continues dead pipeline p"}},
			{time.Minute, false, []alert{dead}, nil},
			{2 * time.Hour, false, []alert{dead}, []string{"continues dead pipeline p"}},
			{time.Minute, false, nil, []string{"ended dead pipeline p"}},
			{time.Hour, false, nil, nil},
			{0, false, []alert{dead}, []string{"began dead pipeline p"}},
		},
		"the receiver is down": {
			{0, true, []alert{dead}, nil},
			{30 * time.Second, false, []alert{dead}, nil}, // the back-off lasts
			{30 * time.Second, true, []alert{dead}, nil},
			{time.Minute, false, []alert{dead}, nil},
			{3 * time.Hour, false, []alert{dead}, []string{"began dead pipeline p"}},
			{time.Minute, true, nil, nil},
			{time.Hour, false, []alert{dead}, []string{"ended dead pipeline p"}},
			{time.Minute, false, []alert{dead}, []string{"began dead pipeline p"}},
		},
		"it ends before its beginning was sent": {
			{0, true, []alert{dead}, nil},
			{time.Minute, false, nil, []string{"began dead pipeline p", "ended dead pipeline p"}},
		},
		"a condition that is not sure": {
			{0, false, []alert{kept}, nil},
			{time.Minute, false, []alert{dead}, []string{"began dead pipeline p"}},
			{time.Minute, false, []alert{kept}, nil},
			{time.Minute, false, nil, []string{"ended dead pipeline p"}},
		},
		"another process has found it": {
			{0, false, []alert{other}, []string{"began dead pipeline other"}},
			{time.Hour, false, nil, nil},
			{time.Minute, false, []alert{other}, []string{"continues dead pipeline other"}}, // from its process
			{25 * time.Hour, false, nil, []string{"ended dead pipeline other"}},             // that stopped
		},
	} {
		t.Run(name, func(t *testing.T) {
			virtualtime.Test(t, func(t *testing.T) {
				r := &receiver{}
				a := newAlerts(t, r, memory.New(), "x")
				for i, s := range steps {
					time.Sleep(s.after)
					r.down = s.down
					a.checkLasting(t.Context(), s.lasting...)
					r.expect(t, fmt.Sprint("step ", i), s.want...)
				}
			})
		})
	}
}

// crashing is a record store that loses its connection.
type crashing struct {
	store.Store
	down bool
}

func (c *crashing) Swap(ctx context.Context, changes []store.Change) ([]store.Outcome, error) {
	if c.down {
		return nil, errors.New("the process was killed")
	}
	return c.Store.Swap(ctx, changes)
}

func TestManyAlerts(t *testing.T) {
	virtualtime.Test(t, func(t *testing.T) {
		r := &receiver{}
		a := newAlerts(t, r, memory.New(), "x")
		var lasting []alert
		for i := range 2 * maxAlerts {
			lasting = append(lasting, alert{Condition: "dead", Kind: "pipeline", Subject: fmt.Sprintf("%0200d", i), Summary: strings.Repeat("x", 200)})
		}
		for _, step := range []struct {
			began, ended int
			lasting      []alert
		}{{maxAlerts, 0, lasting}, {0, 50, lasting[50:]}, {50, 0, lasting[50:]}, {0, maxAlerts, nil}} {
			a.checkLasting(t.Context(), step.lasting...)
			got := r.Take()
			ended := slices.DeleteFunc(slices.Clone(got), func(m string) bool { return strings.HasPrefix(m, "/ began") })
			if len(ended) != step.ended || len(got)-len(ended) != step.began {
				t.Errorf("%d messages of which %d are ends, want %d beginnings and %d ends", len(got), len(ended), step.began, step.ended)
			}
			time.Sleep(time.Minute)
		}
	})
}

func TestCrashAfterSendingRepeatsTheID(t *testing.T) {
	virtualtime.Test(t, func(t *testing.T) {
		dead := alert{Condition: "dead", Kind: "pipeline", Subject: "p", Summary: "x"}
		records := &crashing{Store: memory.New()}
		r := &receiver{}
		for _, step := range []struct {
			kind    string
			lasting []alert
		}{{"began", []alert{dead}}, {"continues", []alert{dead}}, {"ended", nil}} {
			for _, crash := range []bool{true, true, false, false} { // each time in another process
				r.accepted = func() { records.down = crash }
				newAlerts(t, r, records, "x").checkLasting(t.Context(), step.lasting...)
				records.down = false
			}
			message := step.kind + " dead pipeline p"
			r.expect(t, "with one ID", message, message, message)
			time.Sleep(time.Hour)
		}
	})
}

func TestOneProcessSends(t *testing.T) {
	virtualtime.Test(t, func(t *testing.T) {
		r, records := &receiver{}, memory.New()
		putRow(t, records, ledger.Row{Dead: true})
		ctx, stop := context.WithCancel(t.Context())
		var work sync.WaitGroup
		start := func(ctx context.Context) {
			a := newAlerts(t, r, records, "x")
			work.Go(func() {
				_ = metrics.InOneProcess(ctx, a.Ledger, "metrics", a.Logger, func(ctx context.Context) error {
					a.CheckPipelines(ctx, map[string]ledger.Unsettled{"p": {}})
					return nil
				}, func() {})
			})
		}
		second, kill := context.WithCancel(ctx)
		start(second)
		start(ctx)
		start(ctx)
		time.Sleep(30 * time.Minute)
		kill()
		time.Sleep(30*time.Minute + 90*time.Second)
		stop()
		work.Wait()
		r.expect(t, "three processes", "began dead pipeline p", "continues dead pipeline p")
	})
}

func putRow(t *testing.T, records store.Store, row ledger.Row) {
	t.Helper()
	row.RowKey, row.Nonce = ledger.RowKey{Pipeline: "p", Bucket: "b", Key: "k"}, store.NewNonce()
	row.Want.Kind = event.Created
	out, err := ledger.NewRows(records).Swap(t.Context(), []ledger.Change{{Key: row.RowKey, Row: &row}})
	if err != nil || !out[0].Applied {
		t.Fatal(err, out)
	}
}

func writeRegister(t *testing.T, l *ledger.Rows, name, value string) {
	t.Helper()
	r, err := l.ReadRegister(t.Context(), name)
	if err == nil {
		_, err = l.WriteRegister(t.Context(), name, r.Version, []byte(value))
	}
	if err != nil {
		t.Fatal(err)
	}
}

func TestConditionsOfPipelines(t *testing.T) {
	virtualtime.Test(t, func(t *testing.T) {
		r, records := &receiver{}, memory.New()
		a := newAlerts(t, r, records, "pipelines")
		step := func(what string, u ledger.Unsettled, reports string, want ...string) {
			t.Helper()
			writeRegister(t, a.Ledger, "audit/reports", `{"v":"1.0","reports":`+reports+`}`)
			a.CheckPipelines(t.Context(), map[string]ledger.Unsettled{"p": u})
			r.expect(t, what, want...)
		}
		old := time.Now().Add(-16 * time.Minute)
		step("nothing", ledger.Unsettled{Oldest: time.Now()}, `[]`)
		step("an old row", ledger.Unsettled{Oldest: old}, `[]`, "began oldest pipeline p")
		step("too many rows", ledger.Unsettled{Oldest: time.Now(), Truncated: true}, `[]`)
		step("no old row", ledger.Unsettled{}, `[]`, "ended oldest pipeline p")
		losses := `{"pipelines":[{"name":"p","lost_creations":1}]}`
		step("losses", ledger.Unsettled{}, `[`+losses+`]`, "began losses pipeline p")
		step("an audit of a prefix finds nothing", ledger.Unsettled{}, `[{"prefix":"a","pipelines":[{"name":"p"}]},`+losses+`]`)
		a.CheckPipelines(t.Context(), map[string]ledger.Unsettled{"q": {}})
		r.expect(t, "a process without the pipeline")
		step("an audit of another pipeline", ledger.Unsettled{}, `[{"pipelines":[{"name":"q"}]},`+losses+`]`)
		step("no losses", ledger.Unsettled{}, `[{"pipelines":[{"name":"p"}]},`+losses+`]`, "ended losses pipeline p")
		step("withheld", ledger.Unsettled{}, `[{"pipelines":[{"name":"p","withheld":200}]}]`, "began brake pipeline p")
		step("not withheld", ledger.Unsettled{}, `[{"pipelines":[{"name":"p"}]}]`, "ended brake pipeline p")
		putRow(t, records, ledger.Row{Dead: true})
		step("a dead row", ledger.Unsettled{}, `[]`, "began dead pipeline p")
	})
}

func TestSilenceOfASource(t *testing.T) {
	virtualtime.Test(t, func(t *testing.T) {
		r, records := &receiver{}, memory.New()
		start := func() (delivered *atomic.Pointer[time.Time], a *Alerts, stop func()) {
			delivered, a = new(atomic.Pointer[time.Time]), newAlerts(t, r, records, "pipelines")
			delivered.Store(&time.Time{})
			a.SilentAfter, a.LastDelivery = map[string]time.Duration{"sqs": time.Hour}, func(string) time.Time { return *delivered.Load() }
			ctx, cancel := context.WithCancel(t.Context())
			var work sync.WaitGroup
			work.Go(func() { a.Publish(ctx) })
			return delivered, a, func() { cancel(); work.Wait() }
		}
		delivered, _, stop := start()
		_, other, stopOther := start()
		step := func(what string, a *Alerts, after time.Duration, want ...string) {
			t.Helper()
			time.Sleep(after)
			synctest.Wait()
			a.CheckPipelines(t.Context(), nil)
			r.expect(t, what, want...)
		}
		step("after the start", other, time.Minute)
		delivered.Store(new(time.Now()))
		step("another process got a message", other, time.Hour-time.Minute)
		step("silence", other, 2*time.Minute, "began silence source sqs")
		stopOther()
		stop()
		delivered, a, stop := start()
		step("after a restart", a, time.Minute)
		delivered.Store(new(time.Now()))
		step("a message", a, time.Minute, "ended silence source sqs")
		stop()
		_, a, stop = start()
		step("Pawl was down", a, 0)
		stop()
		time.Sleep(5 * time.Hour)
		_, a, stop = start()
		step("Pawl was down for long", a, time.Minute)
		step("silence since the start", a, time.Hour, "began silence source sqs")
		stop()
	})
}

func TestGapOfAnArchive(t *testing.T) {
	virtualtime.Test(t, func(t *testing.T) {
		r, records := &receiver{}, memory.New()
		a := newAlerts(t, r, records, "archives")
		a.NoteGap("clicks", "shard-1", true)
		ctx, stop := context.WithCancel(t.Context())
		stop()
		a.Publish(ctx) // a process that ends at once
		time.Sleep(5 * time.Hour)

		ctx, stop = context.WithCancel(t.Context())
		a = newAlerts(t, r, records, "archives")
		var work sync.WaitGroup
		work.Go(func() { a.Publish(ctx) })
		work.Go(func() { _ = a.RunArchives(ctx, []string{"clicks", "quiet"}) })
		step := func(what string, after time.Duration, want ...string) {
			t.Helper()
			time.Sleep(after)
			synctest.Wait()
			r.expect(t, what, want...)
		}
		step("a gap of an earlier process", time.Second, "began gap archive clicks")
		step("it is old", time.Minute, "ended gap archive clicks")
		a.NoteGap("clicks", "shard-2", false)
		step("a new gap", time.Minute, "began gap archive clicks")
		step("it lasts", 58*time.Minute)
		step("it ends", 3*time.Minute, "ended gap archive clicks")
		stop()
		work.Wait()
	})
}

func TestErrorsContainNoSecret(t *testing.T) {
	var log strings.Builder
	a := newAlerts(t, &receiver{}, memory.New(), "x")
	a.Logger, a.client.Transport = slog.New(slog.NewTextHandler(&log, nil)), nil
	a.URL = "http://127.0.0.1:1/hush?token=hush"
	a.checkLasting(t.Context(), alert{Condition: "dead", Kind: "pipeline", Subject: "p"})
	if !strings.Contains(log.String(), "127.0.0.1:1") || strings.Contains(log.String(), "hush") || strings.Contains(log.String(), servertest.AlertsSecret) {
		t.Errorf("log: %s", &log)
	}
	for _, c := range []Config{
		{URL: "ftp://hush", Secret: servertest.AlertsSecret}, {URL: "http://hush:hush@host", Secret: servertest.AlertsSecret}, {URL: "http://hush host/", Secret: servertest.AlertsSecret},
		{URL: "http://host", Secret: "whsec_hush"}, {URL: "http://host", Secret: servertest.AlertsSecret[len("whsec_"):]},
		{URL: "http://host", Secret: servertest.AlertsSecret, SilentAfter: map[string]time.Duration{"sqs": time.Second}},
	} {
		if _, err := New(c); err == nil || strings.Contains(err.Error(), "hush") {
			t.Errorf("%+v: error %v", c, err)
		}
	}
}
