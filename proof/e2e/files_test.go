//go:build unix

package e2e

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/pawlhq/pawl/event"
	"github.com/pawlhq/pawl/files"
	"github.com/pawlhq/pawl/files/s3objects"
	"github.com/pawlhq/pawl/proof/servertest"
	"github.com/pawlhq/pawl/store"
	"github.com/pawlhq/pawl/store/dynamo"
	"github.com/pawlhq/pawl/store/postgres"
	"github.com/pawlhq/pawl/store/sqlite"
)

var (
	uploads     = flag.Int("uploads", 72, "uploads of TestFiles")
	uploadKills = flag.Int("uploadkills", 8, "SIGKILLs during TestFiles")
	uploadStops = flag.Int("uploadstops", 2, "SIGSTOPs during TestFiles")
)

const (
	uploaders  = 24
	fileServes = 2 // processes
	filePrefix = "files/"
)

const filesConfig = `
objects: {endpoint: %q, region: %s, path_style: true}
sources:
  - webhook: {listen: "${PAWL_LISTEN}", path: /events, token: %q}
files: {to: s3://inputs/files/, index: %q, listen: "${PAWL_API}", secret: %q, accept_forgeable_uploads: true}
`

// TestFiles runs clients that upload, complete, delete and undelete files through "pawl files serve".
// Processes are killed and frozen; notifications are lost, repeated and late; uploads land late or lose
// their answer.
//
// Lists contain each visible file once, and no deleted file. Then all rows are made days older: timers
// repair lost files, remove deleted ones and drop tombstones. At rest, index and bucket have the same
// files.
func TestFiles(t *testing.T) {
	servertest.Long(t)
	t.Parallel()
	t.Run("sqlite", func(t *testing.T) {
		t.Parallel()
		testFiles(t, filepath.Join(t.TempDir(), "files.db"))
	})
	t.Run("postgres", func(t *testing.T) {
		t.Parallel()
		testFiles(t, servertest.Postgres(t).URL)
	})
	t.Run("dynamodb", func(t *testing.T) {
		t.Parallel()
		table := servertest.DynamoDB(t).NewTable()
		if err := dynamo.Create(t.Context(), table); err != nil {
			t.Fatal(err)
		}
		testFiles(t, table)
	})
}

func testFiles(t *testing.T, index string) {
	seed := *firstSeed
	if seed == 0 {
		seed = rand.Uint64N(1 << 40)
	}
	t.Logf("repeat with: go test ./proof/e2e -run 'TestFiles$' -uploads %d -uploadkills %d -uploadstops %d -seed %d", *uploads, *uploadKills, *uploadStops, seed)
	s := newFilesTest(t, seed, index)
	s.run(t)
	s.waitForNotifications(t)
	s.advanceTime(t, 14*time.Hour, files.Pending)
	s.checkVisibleFiles(t)
	s.advanceTime(t, 25*time.Hour, files.Deleted, files.Purging)
	s.advanceTime(t, 30*time.Hour, files.Gone, files.Expired)
	s.lister.stop()
	s.checkIndexMatchesBucket(t)
	s.fleet.stop(t)
	s.logSummary(t)
}

type filesTest struct {
	seed              uint64
	began             time.Time
	buckets           *testBuckets
	bucket            *s3objects.Bucket
	network           *network
	relay             *relay
	fleet             *fleet
	index             *files.Index
	lister            *listChecker
	lostNotifications int
	openParts         int
	orphanUploads     int
	resent            atomic.Int32

	mu    sync.Mutex
	files []*clientFile
}

func newFilesTest(t *testing.T, seed uint64, index string) *filesTest {
	t.Helper()
	const auth = "Basic cGF3bDpzM2NyZXQ="
	dir := t.TempDir()
	s := &filesTest{seed: seed, began: time.Now(), fleet: &fleet{
		binary: build(t), dir: dir, config: filepath.Join(dir, "pawl.yaml"), command: []string{"files", "serve"},
		isZombie: func(int) bool { return true },
	}}
	s.relay = newRelay(t, seed, s.fleet.addresses, poster(t, auth, time.Second))
	server := servertest.MinIO(t, servertest.Options{Webhook: s.relay.url, Authorization: auth})
	s.network = newNetwork(t, seed, server.Endpoint)
	s.network.writeBucket = inputs
	s.buckets = newTestBuckets(t, server)
	s.bucket = s3objects.New(server.Client(), inputs, "").AcceptForgeable()
	server.Notify(t, inputs)
	records, err := openRecords(t.Context(), index)
	if err != nil {
		t.Fatal(err)
	}
	s.index = files.NewIndex(records)
	t.Cleanup(func() { _ = s.index.Close() })
	text := fmt.Sprintf(filesConfig, s.network.url, server.Region, auth, index, filesSecret)
	if err := os.WriteFile(s.fleet.config, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	s.fleet.env = []string{"AWS_ACCESS_KEY_ID=" + server.AccessKey, "AWS_SECRET_ACCESS_KEY=" + server.SecretKey}
	s.fleet.start(t, fileServes)
	return s
}

func openRecords(ctx context.Context, at string) (store.Store, error) {
	if strings.HasPrefix(at, "postgres://") {
		return postgres.Open(ctx, at)
	}
	if strings.HasPrefix(at, "dynamodb://") {
		return dynamo.Open(ctx, at)
	}
	return sqlite.Open(ctx, at)
}

func (s *filesTest) run(t *testing.T) {
	t.Helper()
	ctx, cancel := context.WithTimeoutCause(t.Context(), 5*time.Minute+time.Duration(*uploads+10**uploadKills)*200*time.Millisecond, errors.New("the clients are not done"))
	defer cancel()
	s.lister = s.newListChecker(t)
	errs := make(chan error, uploaders+1)
	for i := range uploaders {
		rng := rand.New(rand.NewPCG(s.seed, uint64(100+i)))
		c := newFilesClient(t, fmt.Sprintf("client-%d", i), rng, s.fleet.apis)
		s.fleet.wg.Go(func() {
			for n := i; n < *uploads; n += uploaders {
				if err := s.runFile(ctx, c, n); err != nil {
					errs <- fmt.Errorf("upload %d: %w", n, err)
					return
				}
			}
			errs <- nil
		})
	}
	faults := planFaults(rand.New(rand.NewPCG(s.seed, 0)), *uploadKills, *uploadStops, fileServes)
	s.fleet.wg.Go(func() { errs <- s.fleet.injectAll(ctx, faults) })
	for range cap(errs) {
		if err := <-errs; err != nil {
			t.Error(err)
		}
	}
	if t.Failed() {
		t.FailNow()
	}
	s.progress(t, "the clients are done, and all faults are injected")
}

func (s *filesTest) progress(t *testing.T, what string) {
	t.Helper()
	t.Logf("%5.1f s: %s", time.Since(s.began).Seconds(), what)
}

// After waitForNotifications, a file is pending only if its bytes were not uploaded or its notification was
// lost. MinIO sends none if the uploader disconnects at the last moment.
func (s *filesTest) waitForNotifications(t *testing.T) {
	t.Helper()
	untold := map[string]bool{}
	eventually(t, 5*time.Minute, func(ctx context.Context) (bad []string, err error) {
		if !s.network.idle() {
			return []string{"uploads are pending"}, nil
		}
		objects, err := s.objects(ctx)
		for key := range objects {
			untold[key] = !s.relay.hasSeen(event.Object{Bucket: inputs, Key: key})
			if untold[key] && !s.network.wasAborted(inputs, key) {
				bad = append(bad, "no notification about "+key)
			}
		}
		if n := s.relay.pending(); n > 0 {
			bad = append(bad, fmt.Sprintf("%d notifications are not acknowledged", n))
		}
		return bad, err
	})
	objects, err := s.objects(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	ids := map[string]bool{}
	for _, f := range s.rows(t) {
		ids[f.UploadID] = true
		if f.State != files.Pending || !objects[f.Key] {
			continue
		}
		s.lostNotifications++
		if !untold[f.Key] && !s.relay.lastWasDropped(event.Object{Bucket: inputs, Key: f.Key}) {
			t.Errorf("%s is pending although its notification was acknowledged", f.ID)
		}
	}
	for _, u := range s.openUploads(t) {
		s.openParts++
		if !ids[u.ID] {
			s.orphanUploads++
		}
	}
	s.progress(t, "every notification is processed")
}

func (s *filesTest) objects(ctx context.Context) (map[string]bool, error) {
	keys := map[string]bool{}
	for info, err := range s.buckets.store.List(ctx, inputs, filePrefix, "") {
		if strings.HasPrefix(info.Key, filePrefix+files.ProbeFolder) { // a process was killed while it checked the store
			continue
		}
		if err != nil {
			return nil, err
		}
		keys[info.Key] = true
	}
	return keys, nil
}

// MinIO serves the list of all keys from memory, and keeps an upload there if its client was killed while
// MinIO completed it. The list of a single key is read from disk and contains only open uploads.
func (s *filesTest) openUploads(t *testing.T) (open []files.OpenUpload) {
	t.Helper()
	keys := map[string]bool{}
	for u, err := range s.bucket.Uploads(t.Context(), "") {
		if err != nil {
			t.Fatal(err)
		}
		keys[u.Key] = true
	}
	for _, f := range s.files {
		keys[filePrefix+f.id] = true
	}
	for key := range keys {
		for u, err := range s.bucket.Uploads(t.Context(), key) {
			if err != nil {
				t.Fatal(err)
			}
			open = append(open, u)
		}
	}
	return open
}

func (s *filesTest) rows(t *testing.T) (all []files.File) {
	t.Helper()
	for f, err := range s.index.Scan(t.Context()) {
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, f)
	}
	return all
}

// advanceTime makes all rows older. It kills processes to make them check due rows, which they do at start.
func (s *filesTest) advanceTime(t *testing.T, by time.Duration, states ...files.State) {
	t.Helper()
	for _, f := range s.rows(t) {
		s.ageRow(t, f, by)
	}
	rng := rand.New(rand.NewPCG(s.seed, uint64(by)))
	lives := 200 * time.Millisecond
	eventually(t, 5*time.Minute, func(ctx context.Context) (bad []string, err error) {
		faults := make([][]plannedFault, fileServes)
		lives += 200 * time.Millisecond // a busy machine needs longer for a round of checks
		for i := range faults {
			after := lives + time.Duration(rng.Int64N(int64(600*time.Millisecond)))
			faults[i] = []plannedFault{{after: after, anyTime: i == 0}}
		}
		if err := s.fleet.injectAll(ctx, faults); err != nil {
			return nil, err
		}
		for _, f := range s.rows(t) {
			if due := !f.DueAt.IsZero() && f.DueAt.Before(time.Now()); due || slices.Contains(states, f.State) {
				bad = append(bad, fmt.Sprintf("%s is %s, due at %s", f.ID, f.State, f.DueAt))
			}
		}
		return bad, nil
	})
	s.progress(t, fmt.Sprintf("%s later, no file is %v", by, states))
}

func (s *filesTest) ageRow(t *testing.T, f files.File, by time.Duration) {
	t.Helper()
	for {
		next := f
		for _, at := range []*time.Time{&next.PutBy, &next.LandBy, &next.DeletedAt, &next.DropAt, &next.DueAt, &next.CreatedAt, &next.UpdatedAt} {
			if !at.IsZero() {
				*at = at.Add(-by)
			}
		}
		_, err := s.index.Apply(t.Context(), files.Change{From: &f, Next: next})
		if errors.Is(err, files.ErrConflict) {
			if f, err = s.index.Load(t.Context(), f.ID); err == nil {
				continue
			}
		}
		if err != nil && !errors.Is(err, files.ErrNotFound) {
			t.Fatal(err)
		}
		return
	}
}

// checkVisibleFiles also checks that quotas count deleted files until they are purged.
func (s *filesTest) checkVisibleFiles(t *testing.T) {
	t.Helper()
	var want, got []string
	used := map[string]int64{}
	for _, f := range s.files {
		used[f.entity] += 0
		if f.wantVisible {
			want = append(want, f.id)
			used[f.entity] += max(int64(len(f.body)), 4096)
		}
	}
	for _, f := range s.rows(t) {
		switch f.State {
		case files.Indexed:
			got = append(got, f.ID)
		case files.Deleted, files.Purging:
			used[f.Entity] += max(f.Size, 4096)
		}
	}
	if wrong := differences(want, got); len(wrong) > 0 {
		t.Errorf("%d visible files are wrong, of %d:\n%s", len(wrong), len(want), strings.Join(wrong, "\n"))
	}
	for entity, n := range used {
		if got, err := s.index.Used(t.Context(), entity); err != nil || got.Bytes != n {
			t.Errorf("%s uses %d bytes of its quota, %v; want %d", entity, got.Bytes, err, n)
		}
	}
}

func (s *filesTest) checkIndexMatchesBucket(t *testing.T) {
	t.Helper()
	s.checkVisibleFiles(t)
	objects, err := s.objects(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var keys []string
	for _, f := range s.rows(t) {
		keys = append(keys, f.Key)
	}
	for _, u := range s.openUploads(t) {
		if strings.HasPrefix(u.Key, filePrefix+files.ProbeFolder) { // a process was killed while it checked the store
			continue
		}
		t.Errorf("the upload %s of %s is open", u.ID, u.Key)
	}
	if wrong := differences(keys, slices.Collect(maps.Keys(objects))); len(wrong) > 0 {
		t.Errorf("rows without an object (-) and objects without a row (+):\n%s", strings.Join(wrong, "\n"))
	}
	c := newFilesClient(t, "reader", rand.New(rand.NewPCG(s.seed, 1)), s.fleet.apis)
	for _, f := range s.files {
		if !f.wantVisible {
			continue
		}
		a, err := c.Want(t.Context(), 200, "GET", "/v1/files/"+f.id, nil, nil)
		if err != nil {
			t.Error(err)
			continue
		}
		if text, status, err := c.download(t.Context(), a.DownloadURL); err != nil || string(text) != string(f.body) {
			t.Errorf("downloading %s: %d, %v: %.60q", f.id, status, err, text)
		}
	}
}

func (s *filesTest) logSummary(t *testing.T) {
	t.Helper()
	n := map[string]int{}
	for _, f := range s.files {
		n[f.lastStep]++
	}
	kills, c, w := len(s.fleet.injected), s.relay.Messages(), s.network
	w.mu.Lock()
	defer w.mu.Unlock()
	t.Logf("%d files: %v\nnotifications: %d dropped, %d doubled, %d delayed; pending by a lost one: %d\nrequests: %d HEADs late, writes: %d late, %d aborted, %d without answer\nopen multipart uploads: %d, %d of them without a row; sent again: %d\n%d faults, %d starts; %d lists were correct",
		len(s.files), n, c.Dropped, c.Doubled, c.Delayed, s.lostNotifications, w.delayedHeads, w.delayedWrites, w.abortedWrites, w.lostAnswers, s.openParts, s.orphanUploads, s.resent.Load(), kills, s.fleet.starts, s.lister.lists)
	if c.Dropped+c.Doubled+c.Delayed == 0 || kills < *uploadKills || s.lister.lists == 0 {
		t.Error("too few faults: the test shows too little")
	}
}
