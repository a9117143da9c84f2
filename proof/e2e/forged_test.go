package e2e

import (
	"context"
	"crypto/rand"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/pawlhq/pawl/ledger"
	"github.com/pawlhq/pawl/proof/servertest"
	"github.com/pawlhq/pawl/source/webhooksource"
	"github.com/pawlhq/pawl/store/memory"
)

const forgedNotification = `{"EventName":"s3:ObjectCreated:Put","Key":"inputs/k","Records":[{"eventVersion":"2.0","eventSource":"minio:s3",
"eventTime":"2020-01-02T03:04:05.000Z","eventName":"s3:ObjectCreated:Put","s3":{"s3SchemaVersion":"1.0","bucket":{"name":"inputs"},
"object":{"key":"k","size":3,"eTag":"x","sequencer":"FFFFFFFFFFFFFFFF"}}}]}`

// A huge sequencer makes all later notifications stale if it is trusted. A reset of the order repairs the
// object.
func TestForged(t *testing.T) {
	t.Parallel()
	const auth = "Bearer pawl"
	hook, err := webhooksource.New(webhooksource.Config{Listen: "127.0.0.1:0", Token: auth, TrustSequencer: true, Logger: logTo(t)})
	if err != nil {
		t.Fatal(err)
	}
	objects, rows := &lateStore{}, ledger.NewRows(memory.New())
	defer startPawl(t, objects, rows, hook)()
	<-hook.Ready()
	url := "http://" + hook.Addr().String() + "/events"
	srv := servertest.MinIO(t, servertest.Options{Webhook: url, Authorization: auth})
	w := newTestBuckets(t, srv)
	objects.store.Store(w.store)
	srv.Notify(t, inputs)

	key := ledger.RowKey{Pipeline: "upper", Bucket: inputs, Key: "k"}
	row := func(ctx context.Context) (ledger.Row, error) {
		found, err := rows.Load(ctx, []ledger.RowKey{key})
		if err != nil || len(found) == 0 {
			return ledger.Row{}, err
		}
		return found[0], nil
	}
	becomes := func(what string, f func(r *ledger.Row) bool) {
		t.Helper()
		eventually(t, 2*time.Minute, func(ctx context.Context) ([]string, error) {
			r, err := row(ctx)
			if err == nil && !(r.Settled() && f(&r)) {
				return []string{fmt.Sprintf("not %s: %s of %s, disorder %d", what, r.State(time.Now()), r.Want.Order(), r.Disorder)}, nil
			}
			return nil, err
		})
	}
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url, strings.NewReader(forgedNotification))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", auth)
	if resp, err := http.DefaultClient.Do(req); err != nil || resp.StatusCode != http.StatusOK || resp.Body.Close() != nil {
		t.Fatalf("posted: %v, %v", resp, err)
	}
	becomes("taken", func(r *ledger.Row) bool { return !r.Want.Sequencer.IsZero() })
	w.put(t, "k", "one")
	becomes("counted", func(r *ledger.Row) bool { return r.Disorder == 1 })
	if diffs, err := w.outputDiffs(t.Context(), rows, "up/", strings.ToUpper); len(diffs) == 0 || err != nil {
		t.Errorf("the forged sequencer had no effect: the test shows nothing: %v", err)
	}
	r, err := row(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	next := r.ResetOrder(time.Now())
	_, _ = rand.Read(next.Nonce[:])
	if out, err := rows.Swap(t.Context(), []ledger.Change{{Key: key, Expect: r.Nonce, Row: &next}}); err != nil || !out[0].Applied {
		t.Fatalf("the row cannot be changed: %+v, %v", out, err)
	}
	right := func() {
		t.Helper()
		eventually(t, 2*time.Minute, func(ctx context.Context) ([]string, error) { return w.outputDiffs(ctx, rows, "up/", strings.ToUpper) })
	}
	right()
	w.put(t, "k", "two")
	right()
	becomes("in order", func(r *ledger.Row) bool { return r.Disorder == 0 && !r.Want.Sequencer.IsZero() })
}
