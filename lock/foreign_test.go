package lock

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/pawlhq/pawl/bucket"
	"github.com/pawlhq/pawl/bucket/buckettest"
	"github.com/pawlhq/pawl/event"
)

func leaseText(changes ...string) string {
	text := `{"format":"pawl-lock/1","state":"released","token":7,"nonce":"0123456789abcdef","ttl_ms":30000,"since":"2026-01-01T00:00:00Z"}`
	return strings.NewReplacer(changes...).Replace(text)
}

// invalidLeases are contents that Pawl must not change.
var invalidLeases = map[string]struct {
	content string
	kind    error
	says    string
}{
	"nothing":               {"", ErrForeign, "not the JSON"},
	"a text":                {"hello", ErrForeign, "not the JSON"},
	"half of it":            {leaseText()[:80], ErrForeign, "not the JSON"},
	"two of it":             {leaseText() + leaseText(), ErrForeign, "not the JSON"},
	"bytes":                 {"\xff\x00", ErrForeign, "not the JSON"},
	"a list":                {`[]`, ErrForeign, "not the JSON of a lease"},
	"null":                  {`null`, ErrForeign, "its format is not"},
	"something else's":      {`{"ID":"5b0a","Operation":"OperationTypeApply"}`, ErrForeign, `format is not "pawl-lock/1"`},
	"another format":        {leaseText("pawl-lock/1", "pawl-row/1"), ErrForeign, "its format is not"},
	"a newer format":        {leaseText("pawl-lock/1", "pawl-lock/2"), ErrNewer, "update this one"},
	"a newer format's":      {`{"format":"pawl-lock/2","token":"seven"}`, ErrNewer, "pawl-lock/2"},
	"duplicate names":       {leaseText(`"token":7`, `"token":7,"token":8`), ErrForeign, ""},
	"names in another case": {leaseText(`"token"`, `"Token"`), ErrForeign, "token is 0"},
	"a token of 0":          {leaseText(`"token":7`, `"token":0`), ErrForeign, "its token is 0"},
	"a negative token":      {leaseText(`"token":7`, `"token":-7`), ErrForeign, "its token is -7"},
	"a token that is huge":  {leaseText(`"token":7`, `"token":9223372036854775808`), ErrForeign, "its fields"},
	"another state":         {leaseText("released", "free"), ErrForeign, "its state is free"},
	"no nonce":              {leaseText("0123456789abcdef", ""), ErrForeign, "nonce"},
	"a long nonce":          {leaseText("0123456789abcdef", strings.Repeat("x", 65)), ErrForeign, "nonce"},
	"no TTL":                {leaseText("30000", "0"), ErrForeign, "its ttl_ms is 0"},
	"a TTL that is huge":    {leaseText("30000", "9007199254740993"), ErrForeign, "its ttl_ms is"},
	"a limit that is huge":  {leaseText(`"token":7`, `"token":7,"limit":1001`), ErrForeign, "its limit is 1001"},
	"too many bytes":        {leaseText("}", strings.Repeat(" ", maxRecord)+"}"), ErrForeign, "more than 32768 bytes"},
}

func TestForeignObjectsAreNotChanged(t *testing.T) {
	for name, c := range invalidLeases {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(b *bubble) {
				b.put("k", c.content, nil)
				b.put("k.slots/0000", c.content, nil)
				b.put("k.readers/0000", c.content, nil)
				for what, try := range operations(b) {
					u := b.user()
					err := try(u)
					if !errors.Is(err, c.kind) || !strings.Contains(err.Error(), c.says) || !strings.Contains(err.Error(), "s3://b/k") {
						b.Errorf("%s: %v: want %v, %q", what, err, c.kind, c.says)
					}
					if n := u.calls.Calls(buckettest.Put) + u.calls.Calls(buckettest.Delete); n > 0 {
						b.Errorf("%s: %d writes", what, n)
					}
				}
				for _, key := range b.keys() {
					if b.content(key) != c.content {
						b.Errorf("%s is now %q", key, b.content(key))
					}
				}
			})
		})
	}
}

func operations(b *bubble) map[string]func(*user) error {
	ctx, c := b.Context(), Config{}
	without := func(_ any, err error) error { return err }
	return map[string]func(*user) error{
		"Acquire":           func(u *user) error { return without(u.mutex(c).Acquire(ctx)) },
		"TryAcquire":        func(u *user) error { return without(u.mutex(c).TryAcquire(ctx)) },
		"Show":              func(u *user) error { return without(u.bucket.Show(ctx, "k")) },
		"ForceRelease":      func(u *user) error { return without(u.bucket.ForceRelease(ctx, "k", 7)) },
		"Semaphore.Acquire": func(u *user) error { return without(u.semaphore(2, c).Acquire(ctx)) },
		"RLock":             func(u *user) error { return without(u.rw(c).RLock(ctx)) },
		"Lock":              func(u *user) error { return without(u.rw(c).Lock(ctx)) },
		"Lead": func(u *user) error {
			return u.mutex(c).Lead(ctx, func(context.Context, int64) error { return errors.New("it leads") })
		},
	}
}

func TestForeignObjectAmongReaders(t *testing.T) {
	inBubble(t, func(b *bubble) {
		b.put("k.readers/0003", "mine", nil)
		b.put("k.readers/notes.txt", "mine", nil)
		b.put("k.readers/00001", "mine", nil)
		m := b.user().rw(Config{})
		_, err := m.RLock(b.Context())
		b.wantError(err, ErrForeign, "s3://b/k.readers/0003")
		_, err = m.Lock(b.Context())
		b.wantError(err, ErrForeign, "s3://b/k.readers/0003")
		if rec, err := b.user().bucket.Show(b.Context(), "k"); err != nil || rec.State != Released {
			b.Errorf("left behind: %+v, %v", rec, err)
		}
		b.remove("k.readers/0003") // no slot's name: ignored
		b.noError(b.mustAcquire(m.RLock(b.Context())).Release(b.Context()))
		b.noError(b.mustAcquire(m.Lock(b.Context())).Release(b.Context()))
	})
}

func TestPermanentStoreErrors(t *testing.T) {
	for _, kind := range []error{bucket.ErrDenied, bucket.ErrNoBucket} {
		inBubble(t, func(b *bubble) {
			for what, try := range operations(b) {
				u := b.user()
				for range 10 {
					u.calls.Next(buckettest.Get, buckettest.Answer(kind))
					u.calls.Next(buckettest.List, buckettest.Answer(kind))
				}
				if err := try(u); !errors.Is(err, kind) || !strings.Contains(err.Error(), "s3://b/k") {
					b.Errorf("%s: %v: want %v", what, err, kind)
				}
				if n := u.calls.Calls(buckettest.Put); n > 0 {
					b.Errorf("%s: %d writes", what, n)
				}
			}
			if keys := b.keys(); len(keys) > 0 {
				b.Errorf("left behind: %q", keys)
			}
		})
	}
}

func TestMissingLock(t *testing.T) {
	inBubble(t, func(b *bubble) {
		u := b.user()
		_, err := u.bucket.Show(b.Context(), "k")
		b.wantError(err, bucket.ErrNotFound, "the lock has never been held")
		_, err = u.bucket.ForceRelease(b.Context(), "k", 1)
		b.wantError(err, bucket.ErrNotFound, "the lock has never been held")
		u.wantRequests("2 Get")
	})
}

func TestList(t *testing.T) {
	inBubble(t, func(b *bubble) {
		b.put("l/a", leaseText(), nil)
		b.put("l/b", "mine", nil)
		b.put("l/c", leaseText("pawl-lock/1", "pawl-lock/9"), nil)
		b.put("m", leaseText(), nil)
		var listed []string
		for s, err := range b.user().bucket.List(b.Context(), "l/") {
			b.noError(err)
			listed = append(listed, fmt.Sprintf("%s %d %v %v", s.Key, s.Record.Token, errors.Is(s.Err, ErrForeign), errors.Is(s.Err, ErrNewer)))
		}
		if got, want := strings.Join(listed, ", "), "l/a 7 false false, l/b 0 true false, l/c 0 false true"; got != want {
			b.Errorf("%s\nwant %s", got, want)
		}
		u := b.user()
		u.calls.Next(buckettest.List, buckettest.Answer(bucket.ErrDenied))
		n := 0
		for _, err := range u.bucket.List(b.Context(), "l/") {
			n++
			b.wantError(err, bucket.ErrDenied, "s3://b/l/")
		}
		if n != 1 {
			b.Errorf("it yields %d times", n)
		}
		u.calls.Next(buckettest.Get, buckettest.Answer(bucket.ErrNotFound))
		var keys []string
		for s, err := range u.bucket.List(b.Context(), "l/") {
			b.noError(err)
			keys = append(keys, s.Key)
			if s.Key == "l/b" {
				break
			}
		}
		if got := strings.Join(keys, " "); got != "l/b" {
			b.Errorf("it yields %s", got)
		}
	})
}

type ignoresConditions struct {
	bucket.Store
	absent, match bool
}

func (c ignoresConditions) Put(ctx context.Context, ref event.Object, o bucket.Object, cond bucket.Condition) (string, error) {
	if c.absent {
		cond.IfAbsent = false
	}
	if c.match {
		cond.IfMatch = ""
	}
	return c.Store.Put(ctx, ref, o, cond)
}

func TestOpenRejectsStoreThatIgnoresConditions(t *testing.T) {
	for _, c := range []struct {
		absent, match bool
		says          string
	}{{true, false, "it ignores If-None-Match, "}, {false, true, "it ignores If-Match"}, {true, true, "it ignores If-"}} {
		inBubble(t, func(b *bubble) {
			opened, err := Open(b.Context(), ignoresConditions{b.store, c.absent, c.match}, "b", "locks/")
			b.wantError(err, bucket.ErrIgnored, c.says, "supports locks")
			if opened != nil || len(b.keys()) > 0 {
				b.Errorf("it is opened: %v; left behind: %q", opened, b.keys())
			}
		})
	}
}
