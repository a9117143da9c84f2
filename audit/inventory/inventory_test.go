package inventory

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/pawlhq/pawl/audit/inventory/inventorytest"
	"github.com/pawlhq/pawl/bucket"
	"github.com/pawlhq/pawl/bucket/membucket"
	"github.com/pawlhq/pawl/event"
)

var formats = []string{formatCSV, formatParquet}

var created = time.Date(2026, time.March, 1, 1, 0, 0, 0, time.UTC)

func object(key string, i int) inventorytest.Row {
	return inventorytest.Row{
		Bucket: "photos", Key: key, Size: int64(i), Modified: created.Add(-time.Duration(i+1) * time.Second), ETag: fmt.Sprintf("%032x", i),
	}
}

const (
	currentCSV  = "Bucket, Key, Size, LastModifiedDate, ETag, StorageClass, ReplicationStatus"
	versionsCSV = "Bucket, Key, VersionId, IsLatest, IsDeleteMarker, Size, LastModifiedDate, ETag, StorageClass, ReplicationStatus"
)

var strange = []string{
	"a b", "a+b", "a%20b", "ä/ö", `q"uo,te`, "line\nfeed", "日本.txt", "a", "a/", "a/b", "A", "0", "\x01", "~", "%", strings.Repeat("k", maxKey), "\u00ff",
}

func infos(lines []inventorytest.Row) (want []bucket.Info) {
	for _, l := range lines {
		if !l.Old && !l.Marker {
			want = append(want, bucket.Info{Key: l.Key, ETag: l.ETag, ModTime: l.Modified, Size: l.Size})
		}
	}
	slices.SortFunc(want, func(a, b bucket.Info) int { return strings.Compare(a.Key, b.Key) })
	return want
}

func list(t *testing.T, r *Report, prefix, startAfter string) (got []bucket.Info) {
	t.Helper()
	for info, err := range r.List(t.Context(), "photos", prefix, startAfter) {
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, info)
	}
	return got
}

func checkList(t *testing.T, r *Report, lines []inventorytest.Row) {
	t.Helper()
	all := infos(lines)
	if r.Objects != int64(len(all)) || r.Bucket != "photos" || !r.Created.Equal(created) {
		t.Errorf("%d objects of %s at %s", r.Objects, r.Bucket, r.Created)
	}
	bounds := []string{"", "a", "a/", "a b", "k", "in/", "zzz", "\xff"}
	for _, prefix := range bounds {
		for _, after := range bounds {
			want := slices.DeleteFunc(slices.Clone(all), func(i bucket.Info) bool { return !strings.HasPrefix(i.Key, prefix) || i.Key <= after })
			if diff := cmp.Diff(slices.Clip(want), list(t, r, prefix, after), cmp.Transformer("empty", func(l []bucket.Info) []bucket.Info { return append([]bucket.Info{}, l...) })); diff != "" {
				t.Fatalf("list %q after %q (-want +got):\n%s", prefix, after, diff)
			}
		}
	}
}

func TestList(t *testing.T) {
	lines := []inventorytest.Row{
		{Bucket: "photos", Key: "a/b", Version: "1", Old: true, Size: 99, Modified: created, ETag: "old"},
		{Bucket: "photos", Key: "gone", Version: "2", Marker: true, Modified: created},
		{Bucket: "photos", Key: "gone", Version: "1", Old: true, Size: 1, Modified: created, ETag: "old"},
		{Bucket: "photos", Key: "gone again", Version: "1", Old: true, Marker: true, Modified: created},
	}
	for i, key := range strange {
		lines = append(lines, object(key, i))
	}
	rng := rand.New(rand.NewPCG(1, 2))
	rng.Shuffle(len(lines), func(i, j int) { lines[i], lines[j] = lines[j], lines[i] })
	for _, format := range formats {
		t.Run(format, func(t *testing.T) {
			rep := inventorytest.New(t, format, "photos", created, lines[:7], nil, lines[7:])
			files := rep.Files(t)
			t.Run("folder", func(t *testing.T) {
				checkList(t, opened(t)(OpenFolder(t.Context(), rep.Unpack(t, files), Expect{Bucket: "photos", NotBefore: created})), lines)
			})
			t.Run("bucket", func(t *testing.T) {
				checkList(t, opened(t)(OpenBucket(t.Context(), stored(t, files), event.Object{Bucket: "reports", Key: rep.ManifestKey()}, Expect{})), lines)
			})
		})
	}
}

func opened(t *testing.T) func(*Report, error) *Report {
	tmp := t.TempDir()
	t.Setenv("TMPDIR", tmp)
	return func(r *Report, err error) *Report {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			if err := r.Close(); err != nil {
				t.Error(err)
			}
			leaves(t, tmp)
		})
		return r
	}
}

func leaves(t *testing.T, tmp string) {
	t.Helper()
	if left, err := os.ReadDir(tmp); err != nil || len(left) > 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
}

func stored(t *testing.T, files map[string][]byte) bucket.Store {
	t.Helper()
	s := membucket.New(time.Now, []string{"reports"})
	for key, content := range files {
		o := bucket.Object{Body: bytes.NewReader(content), Size: int64(len(content))}
		if _, err := s.Put(t.Context(), event.Object{Bucket: "reports", Key: key}, o, bucket.Condition{}); err != nil {
			t.Fatal(err)
		}
	}
	return s
}

func TestCurrentVersions(t *testing.T) {
	rep := inventorytest.New(t, formatCSV, "photos", created)
	rep.Schema = currentCSV
	rep.Parts = [][]byte{inventorytest.Zipped(t, `"photos","a+b/%C3%A4","7","2026-02-01T00:00:00.000Z","d41d8cd98f00b204e9800998ecf8427e-2","STANDARD","COMPLETED"`+"\n")}
	r := opened(t)(OpenFolder(t.Context(), rep.Unpack(t, rep.Files(t)), Expect{}))
	want := []bucket.Info{{
		Key: "a b/ä", ETag: "d41d8cd98f00b204e9800998ecf8427e-2", Size: 7, ModTime: time.Date(2026, time.February, 1, 0, 0, 0, 0, time.UTC),
	}}
	if diff := cmp.Diff(want, list(t, r, "", "")); diff != "" {
		t.Error(diff)
	}
}

func TestEmptyBucket(t *testing.T) {
	rep := inventorytest.New(t, formatParquet, "photos", created)
	r := opened(t)(OpenFolder(t.Context(), rep.Unpack(t, rep.Files(t)), Expect{}))
	checkList(t, r, nil)
}

// Small batches are merged on several levels. The newest row of a key counts.
func TestSort(t *testing.T) {
	seed := rand.Uint64()
	rng := rand.New(rand.NewPCG(seed, 0))
	for _, how := range []string{"shuffled", "sorted", "sorted files", "falling"} {
		t.Run(how, func(t *testing.T) {
			const n = 8_000
			s := &sorter{dir: t.TempDir(), room: 3000, fanIn: 4}
			entries := make([]entry, n)
			for i := range entries {
				entries[i] = entry{key: fmt.Sprintf("in/%d/%06d", i%7, i), etag: "e", modified: int64(i), size: int64(i)}
			}
			switch how {
			case "shuffled":
				entries = append(entries, entry{key: "in/3/000010", etag: "stale", modified: -1}, entry{key: "in/3/000010", etag: "new", modified: n})
				rng.Shuffle(len(entries), func(i, j int) { entries[i], entries[j] = entries[j], entries[i] })
			case "sorted":
				slices.SortFunc(entries, entry.compare)
			case "falling":
				slices.SortFunc(entries, func(a, b entry) int { return b.compare(a) })
			}
			for _, e := range entries {
				if err := s.add(t.Context(), e); err != nil {
					t.Fatal(err)
				}
			}
			if err := s.finish(t.Context()); err != nil {
				t.Fatal(err)
			}
			r := &Report{Bucket: "photos", dir: s.dir, runs: s.runs}
			got := list(t, r, "", "")
			if !slices.IsSortedFunc(got, func(a, b bucket.Info) int { return strings.Compare(a.Key, b.Key) }) || len(got) != n {
				t.Errorf("seed %d: %d objects, or they are not sorted", seed, len(got))
			}
			if how == "sorted" && len(s.runs) != 1 || len(s.runs) > 5*3 {
				t.Errorf("seed %d: %d runs", seed, len(s.runs))
			}
			checkSeeks(t, r, got, rng, seed)
			if err := r.Close(); err != nil {
				t.Error(err)
			}
		})
	}
}

func checkSeeks(t *testing.T, r *Report, all []bucket.Info, rng *rand.Rand, seed uint64) {
	t.Helper()
	for range 100 {
		i := rng.IntN(len(all) - 1)
		for info, err := range r.List(t.Context(), "photos", "", all[i].Key) {
			if err != nil || !cmp.Equal(info, all[i+1]) {
				t.Fatalf("seed %d: after %s comes %v, %v", seed, all[i].Key, info, err)
			}
			break
		}
	}
	i := slices.IndexFunc(all, func(o bucket.Info) bool { return o.Key == "in/3/000010" })
	if all[i].ETag == "stale" || all[i].ModTime.UnixMilli() < 10 {
		t.Errorf("seed %d: the report lists the older of two versions: %v", seed, all[i])
	}
}

func TestListEnds(t *testing.T) {
	rep := inventorytest.New(t, formatCSV, "photos", created, []inventorytest.Row{object("a", 1), object("b", 2)})
	r := opened(t)(OpenFolder(t.Context(), rep.Unpack(t, rep.Files(t)), Expect{}))
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for _, err := range r.List(ctx, "photos", "", "") {
		if !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
	}
	if _, err := OpenFolder(ctx, rep.Unpack(t, rep.Files(t)), Expect{}); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	for _, err := range r.List(t.Context(), "videos", "", "") {
		if err == nil || !strings.Contains(err.Error(), "lists bucket photos, not videos") {
			t.Error(err)
		}
	}
	if err := r.runs[0].f.Truncate(3); err != nil {
		t.Fatal(err)
	}
	for _, err := range r.List(t.Context(), "photos", "", "") {
		if err == nil || !strings.Contains(err.Error(), "truncated") {
			t.Error(err)
		}
	}
}

func TestFolderStaysInside(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "a", "b")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "..", "..", "secret"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if f, err := folder(dir)(t.Context(), "../../secret"); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("%v, %v", f, err)
	}
}

func TestBrokenOff(t *testing.T) {
	lines := []inventorytest.Row{object("a", 1), object("b", 2)}
	rep := inventorytest.New(t, formatParquet, "photos", created, lines)
	manifest := event.Object{Bucket: "reports", Key: "//" + rep.ManifestKey()} // a valid key, but not a valid path
	files := rep.Files(t)
	files[manifest.Key], files["//"+rep.ChecksumKey()] = files[rep.ManifestKey()], files[rep.ChecksumKey()]
	store := &breaking{Store: stored(t, files), key: rep.PartKey(0), times: fetchTries - 1}
	checkList(t, opened(t)(OpenBucket(t.Context(), store, manifest, Expect{})), lines)
	store.times = fetchTries
	_, err := OpenBucket(t.Context(), store, manifest, Expect{})
	refuses(t, err, "the connection broke off")
}

type breaking struct {
	bucket.Store
	key   string
	times int
}

func (s *breaking) Get(ctx context.Context, ref event.Object) (bucket.Info, io.ReadCloser, error) {
	info, r, err := s.Store.Get(ctx, ref)
	if ref.Key == s.key && s.times > 0 {
		s.times--
		cut := io.MultiReader(io.LimitReader(r, 10), iotest.ErrReader(errors.New("the connection broke off")))
		return info, io.NopCloser(cut), err
	}
	return info, r, err
}
