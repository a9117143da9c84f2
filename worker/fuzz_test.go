package worker_test

import (
	"context"
	"errors"
	"io"
	"maps"
	"path"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/pawlhq/pawl/bucket"
	"github.com/pawlhq/pawl/bucket/membucket"
	"github.com/pawlhq/pawl/engine"
	"github.com/pawlhq/pawl/event"
	"github.com/pawlhq/pawl/ledger"
	"github.com/pawlhq/pawl/worker"
)

type described struct {
	bucket.Store
	says bucket.Info
}

func (s *described) Head(ctx context.Context, ref event.Object) (bucket.Info, error) {
	info, err := s.Store.Head(ctx, ref)
	return s.describe(ref, info), err
}

func (s *described) Get(ctx context.Context, ref event.Object) (bucket.Info, io.ReadCloser, error) {
	info, body, err := s.Store.Get(ctx, ref)
	return s.describe(ref, info), body, err
}

func (s *described) describe(ref event.Object, info bucket.Info) bucket.Info {
	if ref.Bucket != "in" {
		return info
	}
	says := s.says
	says.Key, says.Size = info.Key, info.Size
	return says
}

// An attempt has its effect below the output's prefix, or its row is dead. A second attempt at the
// same object does nothing. After a change of the metadata, an attempt acts.
func FuzzAttempt(f *testing.F) {
	for _, seed := range []struct{ key, etag, version, contentType, name, value string }{
		{"a", "0123", "", "text/plain", "", ""}, {"a b/é\n", "e\"&size=1", "v1", "", "pawl-source", "s"}, {"..", "", "", "", "", ""},
		{"b/../../c", "\xff", "null", "\x00", "\xff", "\x1b[31m"}, {"./x", "etag=", "", "", "k", "\n"}, {strings.Repeat("k", 1024), "e", "", "", "", ""},
		{"", "e", "", "", "", ""}, {"/", "e", "&", "", "", ""}, {"a//b/", "%", "", "", "K", "v"}, {"a", "\xff", "", "", "", ""},
	} {
		f.Add(seed.key, seed.etag, seed.version, seed.contentType, seed.name, seed.value, seed.etag, seed.version, int64(1763700000), int64(1763700000), seed.value)
		f.Add(seed.key, seed.etag, seed.version, seed.contentType, seed.name, seed.value, "other", "", int64(-1), int64(0), "")
	}
	f.Fuzz(func(t *testing.T, key, etag, version, contentType, name, value, otherTag, otherVersion string, at, otherAt int64, otherValue string) {
		at %= 1 << 40
		one := bucket.Info{ETag: etag, VersionID: version, ContentType: contentType, ModTime: time.Unix(at, 5), Metadata: map[string]string{name: value}}
		two := bucket.Info{ETag: otherTag, VersionID: otherVersion, ContentType: contentType, ModTime: time.Unix(otherAt%(1<<40), 7), Metadata: map[string]string{name: otherValue}}
		fuzzIdentities(t, one, two)
		fuzzAttempt(t, key, one, two)
	})
}

func fuzzIdentities(t *testing.T, one, two bucket.Info) {
	i, j := worker.Identify(&one), worker.Identify(&two)
	if !i.Same(worker.Identify(&one)) || i.Same(j) != (i.String() == j.String()) {
		t.Errorf("%+v and %+v are recorded as %q and %q", one, two, i, j)
	}
	two.ETag, two.VersionID, two.ModTime = one.ETag, one.VersionID, one.ModTime
	j = worker.Identify(&two)
	if same := maps.Equal(one.Metadata, two.Metadata) || one.VersionID != ""; i.Same(j) != same {
		t.Errorf("the same content: %v, with metadata %q and %q of version %q", i.Same(j), one.Metadata, two.Metadata, one.VersionID)
	}
}

func fuzzAttempt(t *testing.T, key string, one, two bucket.Info) {
	objects := membucket.New(time.Now, []string{"in", "out"})
	if _, err := objects.Put(t.Context(), in(key), bucket.Object{Body: strings.NewReader("one"), Size: 3}, bucket.Condition{}); err != nil {
		return // impossible in a store
	}
	nonces := 0
	attempt := func(says bucket.Info, have ledger.Identity, doubt bool) engine.Finished {
		x := &worker.Attempt{
			Objects: &described{objects, says}, Pipeline: toOut(upper), Now: time.Now,
			Nonce: func() string { nonces++; return strconv.Itoa(nonces) },
			Claim: ledger.Claim{
				Key: rowKey(key), Fence: int64(nonces), Doubt: doubt,
				Have: ledger.Version{Kind: event.Created, Identity: have},
			},
		}
		return x.Run(t.Context())
	}
	first := attempt(one, ledger.Identity{Meta: "none"}, false)
	_, err := objects.Head(t.Context(), out(key))
	written := err == nil
	switch {
	case written != (first.Result == engine.Completed), err != nil && !errors.Is(err, bucket.ErrNotFound) && !errors.Is(err, bucket.ErrInvalid):
		t.Fatalf("%+v, but the output: %v", first, err)
	case !written && fit(key):
		t.Fatalf("%+v", first)
	case !written:
		message := first.Failure.Message
		if !first.Failure.Permanent || !utf8.ValidString(message) || strings.ContainsFunc(message, func(r rune) bool { return !strconv.IsPrint(r) }) {
			t.Errorf("%q failed: %+v", key, first.Failure)
		}
		return
	case !strings.HasPrefix(path.Clean("/"+out(key).Key)+"/", "/up/"):
		t.Fatalf("the output %q is not below its prefix", out(key).Key)
	}
	had := first.Ending.Read.Identity
	for _, doubt := range []bool{false, true} {
		if again := attempt(one, had, doubt); again.Result != engine.Completed || again.Acted {
			t.Errorf("second attempt at the same object, with doubt %v: %+v", doubt, again)
		}
	}
	if other := attempt(two, had, false); other.Result != engine.Completed || other.Acted == worker.Identify(&two).Same(worker.Identify(&one)) {
		t.Errorf("%+v after %+v: %+v", two, one, other)
	}
}

// fit reports whether the output of a key can be written.
func fit(key string) bool {
	parts := strings.Split(key, "/")
	return key != "" && len(key) <= event.MaxKey-len("up/") && !slices.Contains(parts, ".") && !slices.Contains(parts, "..")
}
