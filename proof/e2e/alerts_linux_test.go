package e2e

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"image"
	"image/png"
	"io"
	"maps"
	"math/big"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/kinesis/types"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/goccy/go-yaml"
	zombiezen "zombiezen.com/go/sqlite"
	"zombiezen.com/go/sqlite/sqlitex"

	"github.com/pawlhq/pawl/bucket"
	"github.com/pawlhq/pawl/event"
	"github.com/pawlhq/pawl/proof/rig"
	"github.com/pawlhq/pawl/proof/servertest"
	"github.com/pawlhq/pawl/store"
	"github.com/pawlhq/pawl/store/sqlite"
)

var (
	alertScale   = flag.Int("alertscale", 240, "divide the durations in the alert rules by this number; up to 4, it plays all faults, in 18 to 70 minutes, otherwise the quick ones")
	updateAlerts = flag.Bool("update", false, "write the series of the faults to deploy/prometheus/recorded_test.yml")
)

const (
	rulesFile    = "../../deploy/prometheus/rules.yml"
	recordedFile = "../../deploy/prometheus/recorded_test.yml"

	auditEvery   = time.Minute     // of the test's processes, instead of a day
	silentAfter  = 5 * time.Minute // of their source
	settleWindow = 10 * time.Second
	alertSlack   = 2 * time.Minute // an alert begins and ends within this time after the rules permit it
)

const alertsConfig = `
ledger: sqlite:%[1]s/pawl.db
objects: {endpoint: "${ENDPOINT}", region: us-east-1, path_style: true}
sources: [{webhook: {listen: "${HOOK}", token: "%[7]s"}, silent_after: %[8]s}]
%[9]s
retry: {base: %[4]s}
audit: {every: %[5]s, settle_window: %[6]s}
pipelines:
  - name: thumbnails
    match: {bucket: %[2]s}
    %[3]s
`

const blocking = `exec: {command: [sh, -c, 'while test -e "$DIR/block"; do sleep 1; done'], timeout: 3h}`

// ownAlerts are the conditions about which Pawl also sends messages.
var ownAlerts = map[string]string{
	"PawlOldestUnsettled": "oldest pipeline thumbnails", "PawlDeadObjects": "dead pipeline thumbnails", "PawlSourceSilent": "silence source webhook",
	"PawlLossesFound": "losses pipeline thumbnails", "PawlRemovalsWithheld": "brake pipeline thumbnails", "PawlArchiveGap": "gap archive clicks",
}

// A fault is made in processes of its own, and must cause the alerts.
type fault struct {
	name      string
	action    string // of the pipeline. $TO is the output bucket, $DIR a folder
	processes int
	most      int // largest -alertscale; Pawl's own intervals are too long for a larger one
	alerts    map[string]time.Duration
	ownDisk   bool
	archive   bool // archive run instead of run
	begin     func(t *testing.T, f *faulty)
	end       func(t *testing.T, f *faulty)
}

// The durations are those from the beginning of the fault until the condition of the alert holds.
var faults = []fault{
	{
		name: "a killed worker", action: blocking + "\n    concurrency: 1", processes: 2, most: 4,
		alerts: map[string]time.Duration{"PawlDown": 0, "PawlStuckLeases": 35 * time.Second, "PawlOldestUnsettled": 15 * time.Minute},
		// The other worker has no free slot, so it cannot take over the object.
		begin: func(t *testing.T, f *faulty) {
			if err := os.WriteFile(filepath.Join(f.dir, "block"), nil, 0o600); err != nil {
				t.Fatal(err)
			}
			for _, i := range []int{1, 0} {
				f.redirect(f.hooks[i])
				f.put(t, fmt.Sprintf("slow-%d", i), "x")
				f.until(t, fmt.Sprintf(`pawl_attempts_running{job="JOB", instance="%s"} == 1`, f.admins[i]))
			}
			f.running[0].Kill()
		},
		end: func(t *testing.T, f *faulty) { f.start(t, 0); unblock(t, f) },
	},
	{
		name: "a poison picture", action: "image: {grayscale: true, to: s3://$TO/}", processes: 1, most: 1000,
		alerts: map[string]time.Duration{"PawlDeadObjects": 0},
		begin:  func(t *testing.T, f *faulty) { f.put(t, "poison.png", "\x89PNG\r\n\x1a\n and no picture") },
		end:    func(t *testing.T, f *faulty) { f.put(t, "poison.png", picture()) },
	},
	{
		name: "lost notifications", action: "copy: {to: s3://$TO/}", processes: 1, most: 12,
		alerts: map[string]time.Duration{"PawlLossesFound": 2 * auditEvery},
		begin:  loseNotifications, end: deliverNotifications,
	},
	{
		name: "a silent source", action: "copy: {to: s3://$TO/}", processes: 1, most: 12,
		alerts: map[string]time.Duration{"PawlSourceSilent": silentAfter},
		begin:  loseNotifications, end: deliverNotifications,
	},
	{
		name: "an endpoint that does not answer", action: "copy: {to: s3://$TO/}", processes: 1, most: 4,
		alerts: map[string]time.Duration{"PawlAuditOverdue": 2 * auditEvery, "PawlAuditFailed": 2 * auditEvery},
		begin:  func(t *testing.T, f *faulty) { f.move(t, "http://127.0.0.1:1") },
		end:    func(t *testing.T, f *faulty) { f.move(t, f.server.Endpoint) },
	},
	{
		name: "an endpoint of another store", action: "copy: {to: s3://$TO/}", processes: 1, most: 4,
		alerts: map[string]time.Duration{"PawlRemovalsWithheld": 2 * auditEvery},
		begin: func(t *testing.T, f *faulty) {
			const objects = 150
			for i := range objects {
				f.put(t, fmt.Sprint(i), "x")
			}
			// Otherwise the first audit would find so few removals that it schedules them.
			f.until(t, fmt.Sprintf(`min_over_time(pawl_attempts_total{job="JOB", result="committed"}[%s]) >= %d`, prometheusDuration(settleWindow+5*time.Second), objects))
			other := servertest.S3(t)
			for _, name := range []string{f.in, f.out} {
				if _, err := other.Client().CreateBucket(t.Context(), &s3.CreateBucketInput{Bucket: &name}); err != nil {
					t.Fatal(err)
				}
			}
			f.move(t, other.Endpoint)
		},
		end: func(t *testing.T, f *faulty) { f.move(t, f.server.Endpoint) },
	},
	{
		name: "a wrong clock", action: "copy: {to: s3://$TO/}", processes: 1, most: 1000,
		alerts: map[string]time.Duration{"PawlClockSkew": 0},
		begin: func(t *testing.T, f *faulty) {
			store, err := url.Parse(f.server.Endpoint)
			if err != nil {
				t.Fatal(err)
			}
			ahead := httptest.NewServer(&httputil.ReverseProxy{
				Rewrite: func(r *httputil.ProxyRequest) { r.Out.URL.Scheme, r.Out.URL.Host = store.Scheme, store.Host },
				ModifyResponse: func(r *http.Response) error {
					r.Header.Set("Date", time.Now().Add(time.Minute).UTC().Format(http.TimeFormat))
					return nil
				},
			})
			t.Cleanup(ahead.Close)
			f.move(t, ahead.URL)
		},
		end: func(t *testing.T, f *faulty) { f.move(t, f.server.Endpoint) },
	},
	{
		name: "a full disk", action: "copy: {to: s3://$TO/}", processes: 1, most: 4, ownDisk: true,
		alerts: map[string]time.Duration{"PawlRowsNotRead": 0},
		begin: func(t *testing.T, f *faulty) {
			f.hold(t, func(ctx context.Context) error { return fillDisk(ctx, f.running[0].Pid, f.dir) })
		},
		end: func(t *testing.T, f *faulty) { f.release(t) },
	},
	{
		name: "a dead receiver", action: "http: {url: 'http://$RECEIVER/'}", processes: 1, most: 1000,
		alerts: map[string]time.Duration{"PawlReceiverOutage": 0},
		begin: func(t *testing.T, f *faulty) {
			for i := range 5 {
				f.put(t, fmt.Sprint(i), "x")
			}
		},
		end: func(t *testing.T, f *faulty) {
			err := syscall.Listen(int(f.refusing.Fd()), 16)
			if err != nil {
				t.Fatal(err)
			}
			l, err := net.FileListener(f.refusing)
			if err != nil {
				t.Fatal(err)
			}
			srv := &httptest.Server{Listener: l, Config: &http.Server{Handler: http.HandlerFunc(func(http.ResponseWriter, *http.Request) {})}}
			srv.Start()
			t.Cleanup(srv.Close)
		},
	},
	{
		name: "an unauthorized source", action: "copy: {to: s3://$TO/}", processes: 1, most: 12,
		alerts: map[string]time.Duration{"PawlMessagesRejected": 0},
		begin: func(t *testing.T, f *faulty) {
			if _, err := rig.Post(t.Context(), http.DefaultClient, "http://"+f.hooks[0]+"/events", "Bearer wrong", nil); err == nil {
				t.Fatal("the webhook accepts a wrong token")
			}
		},
		end: func(*testing.T, *faulty) {},
	},
	{
		name: "a row of a newer version", action: "copy: {to: s3://$TO/}", processes: 1, most: 12,
		alerts: map[string]time.Duration{"PawlUnreadableRows": 0},
		begin: func(t *testing.T, f *faulty) {
			key := store.Key{Space: "row/thumbnails", Name: store.Join(f.in, "x")}
			f.change(t, store.Change{Key: key, Next: &store.Record{Key: key, Nonce: store.Nonce{1}, Due: time.Now(), Body: `{"v":"9.0"}`}})
		},
		end: func(t *testing.T, f *faulty) {
			f.change(t, store.Change{Key: store.Key{Space: "row/thumbnails", Name: store.Join(f.in, "x")}, Expect: store.Nonce{1}})
		},
	},
	{
		name: "a full backlog", action: blocking + "\nmax_backlog_events: 10", processes: 1, most: 12,
		alerts: map[string]time.Duration{"PawlBacklogFull": 0},
		begin:  func(t *testing.T, f *faulty) { f.putBlocked(t, 10) },
		end:    unblock,
	},
	{
		name: "a slow ledger", action: blocking, processes: 1, most: 4,
		alerts: map[string]time.Duration{"PawlLedgerSlow": 0},
		begin: func(t *testing.T, f *faulty) {
			f.putBlocked(t, 8) // the worker renews their leases
			f.hold(t, f.lockLedger)
		},
		end: func(t *testing.T, f *faulty) { f.release(t); unblock(t, f) },
	},
	{
		name: "late effects", action: blocking, processes: 1, most: 12,
		alerts: map[string]time.Duration{"PawlConvergenceBurnFast": 0, "PawlConvergenceBurnSlow": 0},
		begin: func(t *testing.T, f *faulty) {
			f.put(t, "in time", "x")
			f.until(t, `pawl_convergence_seconds_count{job="JOB"} == 1`)
			f.putBlocked(t, 110)
			f.until(t, `min_over_time(pawl_backlog_events{job="JOB"}[61s]) >= 110`)
			unblock(t, f)
		},
		end: func(*testing.T, *faulty) {},
	},
	{
		name: "a shard that ended unseen", archive: true, processes: 1, most: 12,
		alerts: map[string]time.Duration{"PawlArchiveGap": 0},
		begin: func(t *testing.T, f *faulty) {
			f.archived.putUntil(200)
			f.archived.waitUntilStored()
			f.running[0].Terminate()
			<-f.running[0].Done()
			first := types.Shard{ShardId: aws.String("shardId-000000000000"), HashKeyRange: &types.HashKeyRange{
				StartingHashKey: aws.String("0"), EndingHashKey: aws.String(new(big.Int).Lsh(big.NewInt(1), 126).String()),
			}}
			unseen := f.archived.split(first)[0]
			f.archived.putUntil(400)
			f.archived.split(unseen)
			f.stream.hidden.Store(&map[string]bool{*first.ShardId: true, *unseen.ShardId: true})
			f.start(t, 0)
		},
		end: func(*testing.T, *faulty) {},
	},
	{
		name: "a bucket that denies writes", archive: true, processes: 1, most: 12,
		alerts: map[string]time.Duration{"PawlArchiveShardsStopped": 0},
		begin: func(_ *testing.T, f *faulty) {
			f.objects.reject(deny, func(r *http.Request) bool {
				return r.Method == http.MethodPut && strings.Contains(r.URL.Path, "/clicks/20")
			})
			f.archived.putUntil(200)
		},
		end: func(_ *testing.T, f *faulty) { f.objects.reject(nil, nil) },
	},
}

// hold lets a fault last until release is called.
func (f *faulty) hold(t *testing.T, last func(context.Context) error) {
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- last(ctx) }()
	f.release = func(t *testing.T) {
		stop()
		if err := <-ended; err != nil {
			t.Fatal(err)
		}
	}
}

// lockLedger lets other writers wait for up to 3 seconds.
func (f *faulty) lockLedger(ctx context.Context) error {
	conn, err := zombiezen.OpenConn(filepath.Join(f.dir, "pawl.db"), zombiezen.OpenReadWrite)
	if err != nil {
		return err
	}
	conn.SetBusyTimeout(time.Minute)
	for tick := time.NewTicker(time.Second); err == nil && ctx.Err() == nil; <-tick.C {
		var end func(*error)
		if end, err = sqlitex.ImmediateTransaction(conn); err == nil {
			for range 3 {
				<-tick.C
			}
			end(&err)
		}
	}
	return errors.Join(err, conn.Close())
}

// change changes the ledger beside the worker.
func (f *faulty) change(t *testing.T, c store.Change) {
	t.Helper()
	records, err := sqlite.Open(t.Context(), filepath.Join(f.dir, "pawl.db"))
	if err != nil {
		t.Fatal(err)
	}
	out, err := records.Swap(t.Context(), []store.Change{c})
	if err = errors.Join(err, records.Close()); err != nil || !out[0].Applied {
		t.Fatal(out, err)
	}
}

// putBlocked puts objects whose handlers wait until the file "block" is removed.
func (f *faulty) putBlocked(t *testing.T, n int) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(f.dir, "block"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for i := range n {
		f.put(t, fmt.Sprint(i), "x")
	}
	f.until(t, fmt.Sprintf(`pawl_backlog_events{job="JOB"} >= %d`, n))
}

func unblock(t *testing.T, f *faulty) {
	if err := os.Remove(filepath.Join(f.dir, "block")); err != nil {
		t.Fatal(err)
	}
}

func loseNotifications(t *testing.T, f *faulty) {
	f.redirect("")
	f.put(t, "lost", "x")
}

func deliverNotifications(t *testing.T, f *faulty) {
	f.redirect(f.hooks[0])
	f.put(t, "found", "x")
}

// TestAlerts makes faults for real. Each of its alerts must begin and end in a real Prometheus.
func TestAlerts(t *testing.T) {
	servertest.Long(t)
	t.Parallel()
	a := &alertTest{to: map[string]string{}, receiver: &servertest.AlertReceiver{}}
	relay, receiver := httptest.NewServer(http.HandlerFunc(a.carry)), httptest.NewServer(a.receiver)
	t.Cleanup(relay.Close)
	t.Cleanup(receiver.Close)
	a.alertsURL = receiver.URL
	a.server = servertest.MinIO(t, servertest.Options{Webhook: relay.URL})
	text, err := os.ReadFile(rulesFile)
	if err != nil {
		t.Fatal(err)
	}
	a.rules = parseRules(t, text)
	var all []*faulty
	var config strings.Builder
	scrape := max(scaled(5*time.Second), 500*time.Millisecond) // also the timeout; after a failed scrape, alerts start to wait again
	fmt.Fprintf(&config, "global: {scrape_interval: %s, scrape_timeout: %[1]s, evaluation_interval: %[1]s}\nrule_files: [%s]\nscrape_configs:\n", prometheusDuration(scrape), a.write(t, "rules.yml", scaledRules(t, string(text))))
	for i := range faults {
		if *alertScale > faults[i].most {
			continue
		}
		f := a.prepare(t, &faults[i])
		all = append(all, f)
		fmt.Fprintf(&config, "  - {job_name: %s, static_configs: [{targets: [%s]}]}\n", f.job, strings.Join(f.admins, ", "))
	}
	a.prometheus = servertest.Prometheus(t, a.write(t, "prometheus.yml", config.String()))
	t.Run("faults", func(t *testing.T) {
		for _, f := range all {
			t.Run(f.name, func(t *testing.T) {
				t.Parallel()
				f.play(t)
			})
		}
	})
	if *updateAlerts && !t.Failed() {
		writeRecorded(t, all)
	}
}

type alertTest struct {
	server     *servertest.Server
	prometheus string // URL
	receiver   *servertest.AlertReceiver
	alertsURL  string
	rules      map[string]*alertRule

	mu sync.Mutex
	to map[string]string // bucket to webhook; "" loses its notifications
}

type faulty struct {
	*fault
	*alertTest
	dir, in, out, job string
	admins, hooks     []string
	running           []*rig.Process
	config, endpoint  string
	refusing          *os.File // a socket that refuses connections until it listens
	release           func(*testing.T)
	command           []string
	archived          *archiveTest
	stream            *shardHidingProxy
	objects           *rejectingProxy
	times             *faultTimes // after the alerts have ended
}

type faultTimes struct{ began, breaking, repairing, ended time.Time }

func (a *alertTest) write(t *testing.T, name, text string) string {
	t.Helper()
	name = filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return name
}

func scaled(d time.Duration) time.Duration { return d / time.Duration(*alertScale) }

func prometheusDuration(d time.Duration) string { return fmt.Sprintf("%dms", d.Milliseconds()) }

var ruleDuration = regexp.MustCompile(`(for: |\[|offset )(\d+[mh])\b`)

// scaledRules also makes the two changes that the file asks operators to make: the source's limit and the
// interval of audits.
func scaledRules(t *testing.T, text string) string {
	t.Helper()
	rules := ruleDuration.ReplaceAllStringFunc(text, func(s string) string {
		m := ruleDuration.FindStringSubmatch(s)
		return m[1] + prometheusDuration(scaled(parseDuration(m[2])))
	})
	in := func(d time.Duration) string { return fmt.Sprint(scaled(d).Seconds()) }
	changed := strings.NewReplacer(
		"age_seconds > 900", "age_seconds > "+in(15*time.Minute),
		"timestamp_seconds) < 300", "timestamp_seconds) < "+in(5*time.Minute),
		"> 2 * 86400", "> 2 * "+in(auditEvery),
		"# - record: source:pawl_silent_after:seconds", "- record: source:pawl_silent_after:seconds",
		"#   expr: vector(3600)", "  expr: vector("+in(silentAfter)+")",
		"#   labels: {source: sqs}", "  labels: {source: webhook}",
	).Replace(rules)
	if n := strings.Count(changed, "vector("); n != 1 || strings.Contains(changed, "#   expr") {
		t.Fatal("rules.yml has another text than the test expects")
	}
	return changed
}

type alertRule struct{ Alert, Record, Expr, For string }

func parseRules(t *testing.T, text []byte) map[string]*alertRule {
	t.Helper()
	var file struct {
		Groups []struct{ Rules []*alertRule }
	}
	if err := yaml.Unmarshal(text, &file); err != nil {
		t.Fatal(err)
	}
	all := map[string]*alertRule{}
	for _, g := range file.Groups {
		for _, r := range g.Rules {
			all[r.Alert+r.Record] = r
		}
	}
	return all
}

func (r *alertRule) pending() time.Duration { return parseDuration(r.For) }

// window is the time for which a counter's increase is visible.
func (a *alertTest) window(expr string) (longest time.Duration) {
	for _, m := range ruleDuration.FindAllStringSubmatch(expr, -1) {
		longest = max(longest, parseDuration(m[2]))
	}
	for _, name := range seriesName.FindAllString(expr, -1) {
		if r := a.rules[name]; r != nil {
			longest = max(longest, a.window(r.Expr))
		}
	}
	return longest
}

func parseDuration(s string) time.Duration {
	d, _ := time.ParseDuration(s)
	return d
}

func (a *alertTest) prepare(t *testing.T, spec *fault) *faulty {
	t.Helper()
	f := &faulty{fault: spec, alertTest: a, dir: t.TempDir(), in: a.server.NewBucket(t), out: a.server.NewBucket(t), endpoint: a.server.Endpoint}
	f.job = "pawl-" + f.in
	address := func() string {
		addr, err := servertest.FreeAddress()
		if err != nil {
			t.Fatal(err)
		}
		return addr
	}
	for range spec.processes {
		f.admins, f.hooks = append(f.admins, address()), append(f.hooks, address())
	}
	f.running = make([]*rig.Process, spec.processes)
	receiver := f.bindReceiver(t)
	action := strings.NewReplacer("$TO", f.out, "$DIR", f.dir, "$RECEIVER", receiver).Replace(spec.action)
	alerts := fmt.Sprintf("alerts: {url: %s/%s, secret: %s, oldest_after: %s}", a.alertsURL, f.in, servertest.AlertsSecret, scaled(15*time.Minute))
	f.config = a.write(t, "pawl.yaml", fmt.Sprintf(alertsConfig, f.dir, f.in, action, scaled(time.Second), max(time.Second, scaled(auditEvery)), settleWindow,
		serveAuth, max(time.Minute, scaled(silentAfter)), alerts))
	if f.command = []string{"run"}; f.archive {
		f.prepareArchive(t, alerts)
	}
	f.redirect(f.hooks[0])
	a.server.Notify(t, f.in)
	return f
}

func (f *faulty) prepareArchive(t *testing.T, alerts string) {
	t.Helper()
	f.archived = newArchiveTest(t, servertest.Kinesalite(t), rand.New(rand.NewPCG(*firstSeed, 28)))
	f.stream, f.command = newShardHidingProxy(t, f.archived.streams.Endpoint), f.archived.fleet.command
	f.objects = newRejectingProxy(t, f.archived.server.Endpoint)
	f.config = f.archived.writeVariant("alerts", f.archived.streams.Endpoint, f.stream.url, f.archived.server.Endpoint, f.objects.url, "lease:", alerts+"\nlease:")
}

func (f *faulty) bindReceiver(t *testing.T) (address string) {
	t.Helper()
	fd, err := syscall.Socket(syscall.AF_INET, syscall.SOCK_STREAM|syscall.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	f.refusing = os.NewFile(uintptr(fd), "receiver")
	t.Cleanup(func() { _ = f.refusing.Close() })
	if err := syscall.Bind(fd, &syscall.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}}); err != nil {
		t.Fatal(err)
	}
	bound, err := syscall.Getsockname(fd)
	if err != nil {
		t.Fatal(err)
	}
	return fmt.Sprintf("127.0.0.1:%d", bound.(*syscall.SockaddrInet4).Port)
}

// carry passes on notifications of MinIO.
func (a *alertTest) carry(w http.ResponseWriter, r *http.Request) {
	var n struct{ Key string } // bucket/key
	body, err := io.ReadAll(r.Body)
	if err == nil && len(body) > 0 {
		err = json.Unmarshal(body, &n)
	}
	name, _, _ := strings.Cut(n.Key, "/")
	a.mu.Lock()
	hook := a.to[name]
	a.mu.Unlock()
	if err == nil && hook != "" {
		_, err = rig.Post(r.Context(), http.DefaultClient, "http://"+hook+"/events", serveAuth, body)
	}
	if err != nil {
		http.Error(w, err.Error(), http.StatusServiceUnavailable)
	}
}

func (f *faulty) redirect(hook string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.to[f.in] = hook
}

func (f *faulty) put(t *testing.T, key, content string) {
	t.Helper()
	o := bucket.Object{Body: strings.NewReader(content), Size: int64(len(content))}
	if _, err := open(t, f.server).Put(t.Context(), event.Object{Bucket: f.in, Key: key}, o, bucket.Condition{}); err != nil {
		t.Fatal(err)
	}
}

func picture() string {
	var b bytes.Buffer
	_ = png.Encode(&b, image.NewGray(image.Rect(0, 0, 9, 9)))
	return b.String()
}

// move starts the process again with another object store.
func (f *faulty) move(t *testing.T, endpoint string) {
	t.Helper()
	f.running[0].Terminate()
	<-f.running[0].Done()
	f.endpoint = endpoint
	f.start(t, 0)
}

func (f *faulty) start(t *testing.T, i int) {
	t.Helper()
	args := slices.Concat([]string{build(t)}, f.command, []string{"-c", f.config, "--admin", f.admins[i]})
	cmd := exec.CommandContext(t.Context(), args[0], args[1:]...)
	if f.ownDisk {
		cmd = servertest.OnDisk(t.Context(), t, f.dir, "4m", args...)
	}
	cmd.Env = append(os.Environ(), "AWS_ACCESS_KEY_ID="+f.server.AccessKey, "AWS_SECRET_ACCESS_KEY="+f.server.SecretKey,
		"ENDPOINT="+f.endpoint, "HOOK="+f.hooks[i])
	if f.archive {
		cmd.Env = append(cmd.Env, f.archived.fleet.env...)
	}
	rig.OwnProcessGroup(cmd)
	p, err := rig.Start(cmd, filepath.Join(filepath.Dir(f.config), fmt.Sprintf("log-%d", i)))
	if err != nil {
		t.Fatal(err)
	}
	f.running[i] = p
	t.Cleanup(func() {
		p.Kill()
		if t.Failed() {
			t.Logf("log of process %d:\n%s", i, p.LogTail())
		}
	})
	eventually(t, alertSlack, func(ctx context.Context) ([]string, error) {
		_, err := get(ctx, "http://"+f.admins[i]+"/readyz")
		return nil, err
	})
}

func get(ctx context.Context, url string) ([]byte, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return nil, err
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return nil, err
	}
	defer func() { _ = resp.Body.Close() }()
	text, err := io.ReadAll(resp.Body)
	if err == nil && resp.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s: %s: %s", url, resp.Status, text)
	}
	return text, err
}

func (f *faulty) play(t *testing.T) {
	if f.archive {
		f.archived.T = t
	}
	for i := range f.processes {
		f.start(t, i)
	}
	f.until(t, fmt.Sprintf(`count(up{job="JOB"} == 1) == %d`, f.processes))
	began := time.Now()
	f.pass(t, 2*time.Minute)
	for alert := range f.alerts {
		if f.hasFired(t.Context(), alert) == nil {
			t.Errorf("%s fired before the fault", alert)
		}
	}
	breaking := time.Now()
	f.begin(t, f)
	broken := time.Now()
	for _, alert := range f.byDelay() {
		limit := scaled(f.alerts[alert]+f.rules[alert].pending()) + alertSlack
		eventually(t, time.Until(broken.Add(limit)), func(ctx context.Context) ([]string, error) { return nil, f.hasFired(ctx, alert) })
		t.Logf("%s fired after %s, limit %s", alert, time.Since(broken).Round(time.Second), limit)
	}
	f.awaitMessages(t, "began", broken)
	f.pass(t, 2*time.Minute)
	repairing := time.Now()
	f.end(t, f)
	repaired := time.Now()
	for _, alert := range f.byDelay() {
		limit := scaled(f.window(f.rules[alert].Expr)) + alertSlack
		eventually(t, max(time.Second, time.Until(repaired.Add(limit))), func(ctx context.Context) ([]string, error) {
			return nil, f.holds(ctx, fmt.Sprintf(`absent(%s)`, firing(alert)))
		})
		t.Logf("%s ended after %s, limit %s", alert, time.Since(repaired).Round(time.Second), limit)
	}
	f.awaitMessages(t, "ended", repaired)
	f.pass(t, 3*time.Minute)
	f.times = &faultTimes{began, breaking, repairing, time.Now()}
}

// awaitMessages waits for Pawl's own alerts. Pawl reads their conditions once a minute and reports a gap for an hour, at
// any scale.
func (f *faulty) awaitMessages(t *testing.T, kind string, since time.Time) {
	t.Helper()
	for _, alert := range f.byDelay() {
		if ownAlerts[alert] == "" || *alertScale > 1 {
			continue
		}
		message := fmt.Sprintf("/%s %s %s", f.in, kind, ownAlerts[alert])
		eventually(t, alertSlack, func(context.Context) ([]string, error) {
			if f.receiver.Count(message) == 0 {
				return nil, fmt.Errorf("no message %q", message)
			}
			return nil, nil
		})
		t.Logf("the message %q came within %s", message, time.Since(since).Round(time.Second))
	}
}

func (f *faulty) byDelay() []string {
	return slices.SortedFunc(maps.Keys(f.alerts), func(a, b string) int {
		return cmp.Compare(f.alerts[a]+f.rules[a].pending(), f.alerts[b]+f.rules[b].pending())
	})
}

// pass waits for a scaled duration: time itself is what the alerts are about.
func (f *faulty) pass(t *testing.T, d time.Duration) {
	t.Helper()
	select {
	case <-time.After(scaled(d)):
	case <-t.Context().Done():
	}
}

// series is a series of an answer of Prometheus. A point is a time in seconds and a number as text.
type series struct {
	Metric map[string]string
	Values [][2]any // of a range
}

// query replaces JOB by the job of the fault.
func (f *faulty) query(ctx context.Context, path, query string, parameters url.Values) ([]series, error) {
	parameters.Set("query", strings.ReplaceAll(query, "JOB", f.job))
	text, err := get(ctx, f.prometheus+"/api/v1/"+path+"?"+parameters.Encode())
	if err != nil {
		return nil, err
	}
	var answer struct{ Data struct{ Result []series } }
	err = json.Unmarshal(text, &answer)
	return answer.Data.Result, err
}

func (f *faulty) holds(ctx context.Context, condition string) error {
	found, err := f.query(ctx, "query", condition, url.Values{})
	if err == nil && len(found) == 0 {
		err = fmt.Errorf("not true: %s", condition)
	}
	return err
}

func (f *faulty) until(t *testing.T, condition string) {
	t.Helper()
	eventually(t, alertSlack, func(ctx context.Context) ([]string, error) { return nil, f.holds(ctx, condition) })
}

func firing(alert string) string {
	return fmt.Sprintf(`ALERTS{job="JOB", alertname=%q, alertstate="firing"}`, alert)
}

func (f *faulty) hasFired(ctx context.Context, alert string) error {
	return f.holds(ctx, fmt.Sprintf(`present_over_time(%s[3h])`, firing(alert)))
}
