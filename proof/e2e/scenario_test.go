package e2e

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/pawlhq/pawl"
	"github.com/pawlhq/pawl/ledger"
	"github.com/pawlhq/pawl/proof/servertest"
	"github.com/pawlhq/pawl/source/webhooksource"
	"github.com/pawlhq/pawl/store/sqlite"
)

// unusualKeys are keys that collide or change when they are decoded twice, cleaned or cut. Not
// every server supports every key.
var unusualKeys = []string{
	"a b", "a+b", "a%20b", "a%2Bb", "a%252Bb", "a%2b", "%", "%zz", "a&b=c?d#e", "é", "e\u0301", "日本/語.txt",
	"new\nline", "tab\there", "quote\"'`$(x)", "back\\slash", "..hidden", "dots/../up", "../escape", "/leading",
	"trailing ", "\xff\xfe", strings.Repeat("k", 200) + "/" + strings.Repeat("é", 100) + "/" + strings.Repeat("z", 200) + "/" +
		strings.Repeat("y", 200) + "/" + strings.Repeat("x", 200),
}

// TestScenario puts, overwrites, removes and recreates objects on a real store whose webhooks call
// Pawl. At rest, every output is f(input).
func TestScenario(t *testing.T) {
	t.Parallel()
	start := map[string]func(testing.TB, servertest.Options) *servertest.Server{
		"minio": servertest.MinIO, "versitygw": servertest.VersityGW,
	}
	for name, start := range start {
		t.Run(name, func(t *testing.T) { runScenario(t, start) })
	}
}

func runScenario(t *testing.T, start func(testing.TB, servertest.Options) *servertest.Server) {
	const auth = "Basic cGF3bDpzZWNyZXQ=" // the only scheme that both servers can send
	hook, err := webhooksource.New(webhooksource.Config{Listen: "127.0.0.1:0", Token: auth, Logger: logTo(t)})
	if err != nil {
		t.Fatal(err)
	}
	// versitygw requires a listening webhook when it starts, so the object store starts after the
	// worker.
	objects := &lateStore{}
	records, err := sqlite.Open(t.Context(), filepath.Join(t.TempDir(), "pawl.db"))
	if err != nil {
		t.Fatal(err)
	}
	led := ledger.NewRows(records)
	t.Cleanup(func() { _ = led.Close() })
	defer startPawl(t, objects, led, hook)()

	<-hook.Ready()
	srv := start(t, servertest.Options{Webhook: "http://" + hook.Addr().String() + "/events", Authorization: auth})
	w := newTestBuckets(t, srv)
	objects.store.Store(w.store)
	srv.Notify(t, inputs)

	key := func(i int) string { return fmt.Sprintf("in/dir %d/file+%d.txt", i%7, i) }
	for i := range 200 {
		w.put(t, key(i), fmt.Sprintf("first %d", i))
	}
	for _, k := range unusualKeys {
		if srv.Alias != nil && srv.Alias("in/"+k) != "in/"+k || !srv.ListsBytes && !utf8.ValidString(k) {
			w.unsupported = append(w.unsupported, "in/"+k) // stored or announced under another key
			continue
		}
		w.put(t, "in/"+k, "awkward "+fmt.Sprintf("%q", k))
	}
	for i := range 200 {
		if i%2 == 0 {
			w.put(t, key(i), fmt.Sprintf("second %d", i))
		}
		if i%5 == 0 {
			w.remove(t, key(i))
		}
		if i%10 == 0 {
			w.put(t, key(i), fmt.Sprintf("again %d", i))
		}
	}
	t.Logf("%d objects; %s does not support %q", len(w.want), srv.Name, w.unsupported)
	if len(w.want) < 180+12 {
		t.Errorf("the store accepted only %d objects: the test shows too little", len(w.want))
	}
	var rows ledger.Store = led
	if srv.Garbles {
		rows = writtenRows{led, w}
	}
	if srv.Garbles {
		waitUntilQuiet(t, rows)
		w.notifyMismatched(t, led, hook.Addr().String(), auth)
	}
	eventually(t, 5*time.Minute, func(ctx context.Context) ([]string, error) {
		return w.outputDiffs(ctx, led, "up/", strings.ToUpper)
	})
	eventually(t, 5*time.Minute, func(ctx context.Context) ([]string, error) {
		bad, n, err := unsettled(ctx, rows)
		if known := 200 + len(unusualKeys) - len(w.unsupported); err == nil && n < known {
			bad = append(bad, fmt.Sprintf("%d rows for %d objects", n, known))
		}
		return bad, err
	})
}

// startPawl starts a Pawl, and returns a function that stops it.
func startPawl(t *testing.T, objects *lateStore, led *ledger.Rows, hook pawl.Source) (stop func()) {
	t.Helper()
	p, err := pawl.New(pawl.Config{
		Ledger: led.Records(), Objects: objects, Sources: []pawl.Source{hook}, Logger: logTo(t),
		Pipelines: []pawl.Pipeline{{
			Name: "upper", Match: pawl.Match{Bucket: inputs}, To: &pawl.Output{Bucket: outputs, Prefix: "up/"},
			Handler: pawl.HandlerFunc(upper),
		}},
	})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	done := make(chan error, 1)
	go func() { done <- p.Run(ctx) }()
	return func() {
		cancel()
		if err := <-done; err != nil {
			t.Errorf("run: %v", err)
		}
		t.Logf("%+v", p.Stats())
	}
}
