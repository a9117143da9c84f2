package lock

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/pawlhq/pawl/bucket"
	"github.com/pawlhq/pawl/bucket/buckettest"
	"github.com/pawlhq/pawl/event"
)

func appendText(text string) func(context.Context, Content) (Content, error) {
	return func(_ context.Context, c Content) (Content, error) {
		c.Body = append(c.Body, text...)
		return c, nil
	}
}

func (u *user) update(text string, c UpdateConfig) (Updated, error) {
	return u.bucket.Update(u.Context(), "k", appendText(text), c)
}

func (b *bubble) wantContent(want string) {
	b.Helper()
	if got := b.content("k"); got != want {
		b.Errorf("the bucket has %q, want %q", got, want)
	}
}

func (u *user) wantNoWrites(want string) {
	u.Helper()
	u.wantContent(want)
	if n := u.calls.Calls(buckettest.Put); n > 0 {
		u.Errorf("%d writes", n)
	}
}

func (b *bubble) metadata() map[string]string {
	b.Helper()
	info, err := b.store.Head(b.Context(), event.Object{Bucket: "b", Key: "k"})
	b.noError(err)
	return info.Metadata
}

func TestUpdateCreates(t *testing.T) {
	inBubble(t, func(b *bubble) {
		u := b.user()
		_, err := u.update("a", UpdateConfig{})
		b.wantError(err, bucket.ErrNotFound, "s3://b/k", "create it first")
		u.wantNoWrites("")
		got, err := u.bucket.Update(b.Context(), "k", func(_ context.Context, c Content) (Content, error) {
			if diff := cmp.Diff(Content{}, c); diff != "" {
				b.Errorf("it begins with %s", diff)
			}
			return c, nil
		}, UpdateConfig{Create: true})
		b.noError(err)
		if keys := b.keys(); !got.Written || got.Tries != 1 || len(keys) != 1 {
			b.Errorf("%+v, the bucket has %q: want an empty object", got, keys)
		}
		got, err = u.update("a", UpdateConfig{})
		if b.noError(err); !got.Written || string(got.Content.Body) != "a" || !got.Content.Exists {
			b.Errorf("%+v", got)
		}
		b.wantContent("a")
	})
}

func TestUpdateKeepsMetadata(t *testing.T) {
	inBubble(t, func(b *bubble) {
		mine := map[string]string{"colour": "red", "x-pawl": "mine"}
		b.put("k", "a", mine)
		_, err := b.user().update("b", UpdateConfig{Fence: 7})
		b.noError(err)
		_, err = b.user().bucket.Update(b.Context(), "k", func(_ context.Context, c Content) (Content, error) {
			if diff := cmp.Diff(Content{Exists: true, Body: []byte("ab"), ContentType: "text/plain", Metadata: mine}, c); diff != "" {
				b.Errorf("it sees (-want +got):\n%s", diff)
			}
			c.Body[0] = 'x'
			c.Metadata["shape"] = "round"
			delete(c.Metadata, "colour")
			c.Metadata[metaFence] = "1"
			c.ContentType = "text/html"
			return c, nil
		}, UpdateConfig{})
		b.noError(err)
		b.wantContent("xb")
		m := b.metadata()
		if ids := strings.Split(m[metaIDs], ","); len(ids) != 2 || len(ids[0]) != idSize || ids[0] == ids[1] {
			b.Errorf("the ids are %q", ids)
		}
		delete(m, metaIDs)
		if diff := cmp.Diff(map[string]string{"x-pawl": "mine", "shape": "round", metaCount: "2", metaFence: "7"}, m); diff != "" {
			b.Errorf("metadata (-want +got):\n%s", diff)
		}
		info, err := b.store.Head(b.Context(), event.Object{Bucket: "b", Key: "k"})
		if b.noError(err); info.ContentType != "text/html" {
			b.Errorf("content type %s", info.ContentType)
		}
	})
}

func TestUnchangedUpdateIsNotWritten(t *testing.T) {
	inBubble(t, func(b *bubble) {
		b.put("k", "a", map[string]string{"colour": "red"})
		u := b.user()
		got, err := u.bucket.Update(b.Context(), "k", func(_ context.Context, c Content) (Content, error) {
			c.Body, c.Metadata, c.Exists = bytes.Clone(c.Body), maps.Clone(c.Metadata), false
			return c, nil
		}, UpdateConfig{})
		b.noError(err)
		if want := (Updated{Tries: 1, Content: Content{Exists: true, Body: []byte("a"), ContentType: "text/plain", Metadata: map[string]string{"colour": "red"}}}); cmp.Diff(want, got) != "" {
			b.Errorf("%+v, want %+v", got, want)
		}
		u.wantNoWrites("a")
		for _, change := range []func(*Content){
			func(c *Content) { c.Body = nil },
			func(c *Content) { c.ContentType = "text/html" },
			func(c *Content) { c.Headers.CacheControl = "no-cache" },
			func(c *Content) { c.Metadata["colour"] = "blue" },
		} {
			got, err = u.bucket.Update(b.Context(), "k", func(_ context.Context, c Content) (Content, error) {
				change(&c)
				return c, nil
			}, UpdateConfig{})
			if b.noError(err); !got.Written {
				b.Errorf("%+v is not written", got)
			}
		}
	})
}

func TestUpdateReturnsChangeError(t *testing.T) {
	inBubble(t, func(b *bubble) {
		b.put("k", "a", nil)
		u, why := b.user(), errors.New("no")
		_, err := u.bucket.Update(b.Context(), "k", func(_ context.Context, c Content) (Content, error) {
			c.Body = []byte("b")
			return c, why
		}, UpdateConfig{})
		if err != why {
			b.Errorf("%v, want %v", err, why)
		}
		u.wantNoWrites("a")
	})
}

func TestUpdateRejectsOldFence(t *testing.T) {
	inBubble(t, func(b *bubble) {
		b.put("k", "", nil)
		for _, c := range []struct {
			text    string
			fence   int64
			refused bool
		}{{"a", 5, false}, {"b", 5, false}, {"c", 4, true}, {"d", 0, false}, {"e", 4, true}, {"f", 9, false}, {"g", 8, true}} {
			u := b.user()
			was := b.content("k")
			_, err := u.update(c.text, UpdateConfig{Fence: c.fence})
			if !c.refused {
				b.noError(err)
				continue
			}
			b.wantError(err, ErrFenced, "s3://b/k", fmt.Sprint(c.fence), "by a later holder of the lock")
			u.wantNoWrites(was)
		}
		b.wantContent("abdf")
	})
}

func TestContendedUpdateFails(t *testing.T) {
	inBubble(t, func(b *bubble) {
		b.put("k", "", nil)
		u, n := b.user(), 0
		_, err := u.bucket.Update(b.Context(), "k", func(ctx context.Context, c Content) (Content, error) {
			n++
			_, err := b.user().update("x", UpdateConfig{})
			b.noError(err)
			return appendText("y")(ctx, c)
		}, UpdateConfig{Tries: 7})
		b.wantError(err, ErrContended, "s3://b/k", "7 attempts", "nothing was written")
		b.wantContent("xxxxxxx")
		if n != 7 {
			b.Errorf("changed %d times", n)
		}
	})
}

func TestUpdateFindsItsID(t *testing.T) {
	for _, others := range []int{1, 5, maxIDs - 1} {
		inBubble(t, func(b *bubble) {
			b.put("k", "", nil)
			u := b.user()
			u.calls.Next(buckettest.Put, landsBefore(func() { b.appendByOther(others) }))
			got, err := u.update("b", UpdateConfig{})
			if b.noError(err); !got.Written || got.Tries != 1 {
				b.Errorf("%+v", got)
			}
			b.wantContent("b" + strings.Repeat("a", others))
		})
	}
}

func landsBefore(more func()) buckettest.Fault {
	return func(ctx context.Context, do func(context.Context) error) error {
		err := buckettest.Landed(ctx, do)
		more()
		return err
	}
}

func (b *bubble) appendByOther(n int) {
	b.Helper()
	u := b.user()
	for range n {
		_, err := u.update("a", UpdateConfig{})
		b.noError(err)
	}
}

func TestUnsureUpdate(t *testing.T) {
	for name, more := range map[string]func(b *bubble){
		"overwritten by another program": func(b *bubble) { b.put("k", "mine", nil) },
		"deleted":                        func(b *bubble) { b.remove("k") },
		"deleted and created again":      func(b *bubble) { b.remove("k"); b.put("k", "", nil); b.appendByOther(4) },
		"beyond its lineage":             func(b *bubble) { b.appendByOther(maxIDs + 1) },
	} {
		t.Run(name, func(t *testing.T) {
			for _, fault := range []func(func()) buckettest.Fault{landsBefore, lostAfter} {
				inBubble(t, func(b *bubble) {
					b.put("k", "", nil)
					b.appendByOther(2)
					u := b.user()
					u.calls.Next(buckettest.Put, fault(func() { more(b) }))
					_, err := u.update("b", UpdateConfig{Create: true})
					b.wantError(err, ErrUnsure, "s3://b/k", "inspect the object")
					b.wantError(err, bucket.ErrUnclear)
					if n := u.calls.Calls(buckettest.Put); n != 1 {
						b.Errorf("%d writes", n)
					}
				})
			}
		})
	}
}

// The write looks as if it had never landed.
func TestDeletedCreationIsRepeated(t *testing.T) {
	inBubble(t, func(b *bubble) {
		u := b.user()
		u.calls.Next(buckettest.Put, landsBefore(func() { b.remove("k") }))
		_, err := u.update("b", UpdateConfig{Create: true})
		b.noError(err)
		b.wantContent("b")
		if n := u.calls.Calls(buckettest.Put); n != 2 {
			b.Errorf("%d writes, want 2: the removed object was written, and then written again", n)
		}
	})
}

func lostAfter(more func()) buckettest.Fault {
	return func(ctx context.Context, do func(context.Context) error) error {
		more()
		return buckettest.Lost(ctx, do)
	}
}

func TestRefusedUpdateIsRetried(t *testing.T) {
	inBubble(t, func(b *bubble) {
		b.put("k", "", nil)
		b.appendByOther(2)
		u := b.user()
		u.calls.Next(buckettest.Put, buckettest.Between(func() { b.put("k", "mine", nil) }))
		got, err := u.update("b", UpdateConfig{})
		if b.noError(err); got.Tries != 2 {
			b.Errorf("%+v", got)
		}
		b.wantContent("mineb")
		u.calls.Next(buckettest.Put, buckettest.Between(func() { b.remove("k") }))
		_, err = u.update("c", UpdateConfig{})
		b.wantError(err, bucket.ErrNotFound)
		b.wantContent("")
	})
}

func TestUpdateReturnsPermanentError(t *testing.T) {
	for _, kind := range []error{bucket.ErrDenied, bucket.ErrInvalid, bucket.ErrNoBucket} {
		for _, op := range []buckettest.Op{buckettest.Get, buckettest.Put} {
			inBubble(t, func(b *bubble) {
				b.put("k", "a", nil)
				u := b.user()
				u.calls.Next(op, buckettest.Answer(kind))
				began := time.Now()
				_, err := u.bucket.Update(b.Context(), "k", func(_ context.Context, c Content) (Content, error) {
					c.Metadata["colour"] = "red"
					return c, nil
				}, UpdateConfig{})
				b.wantError(err, kind, "s3://b/k")
				if errors.Is(err, ErrUnsure) || time.Since(began) > 0 {
					b.Errorf("%v after %v: it is sure", err, time.Since(began))
				}
				b.wantContent("a")
			})
		}
	}
}

func TestUnansweredUpdateIsRetried(t *testing.T) {
	inBubble(t, func(b *bubble) {
		b.put("k", "a", nil)
		u := b.user()
		u.calls.Next(buckettest.Put, noAnswer)
		began := time.Now()
		_, err := u.update("b", UpdateConfig{})
		b.noError(err)
		b.wantDuration(time.Since(began), callTimeout, 2*callTimeout)
		b.wantContent("ab")
	})
}

func TestUpdateTimesOut(t *testing.T) {
	inBubble(t, func(b *bubble) {
		b.put("k", "a", nil)
		u := b.user()
		for range 1000 {
			u.calls.Next(buckettest.Get, buckettest.Answer(bucket.ErrUnavailable))
		}
		_, err := u.bucket.Update(b.withTimeout(time.Second), "k", appendText("b"), UpdateConfig{})
		b.wantError(err, context.DeadlineExceeded, "nothing was written")
		began := time.Now()
		_, err = u.update("b", UpdateConfig{})
		b.wantError(err, bucket.ErrUnavailable, "nothing was written")
		b.wantDuration(time.Since(began), outageTimeout, outageTimeout+2*time.Second)

		u = b.user()
		u.loseWrites()
		_, err = u.bucket.Update(b.withTimeout(time.Minute), "k", appendText("b"), UpdateConfig{})
		b.wantError(err, ErrUnsure)
		b.wantError(err, context.DeadlineExceeded)
		b.wantContent("a")

		ctx, cancel := context.WithCancel(b.Context())
		u = b.user()
		_, err = u.bucket.Update(ctx, "k", func(ctx context.Context, c Content) (Content, error) {
			cancel()
			return c, ctx.Err()
		}, UpdateConfig{})
		b.wantError(err, context.Canceled)
		u.wantNoWrites("a")
	})
}

func TestSlowChangeReadsAgain(t *testing.T) {
	inBubble(t, func(b *bubble) {
		b.put("k", "", nil)
		u, n := b.user(), 0
		got, err := u.bucket.Update(b.Context(), "k", func(ctx context.Context, c Content) (Content, error) {
			if n++; n == 1 {
				sleep(time.Second)
				b.appendByOther(2 * maxIDs)
			}
			return appendText("b")(ctx, c)
		}, UpdateConfig{})
		if b.noError(err); got.Tries != 2 || u.calls.Calls(buckettest.Put) != 1 {
			b.Errorf("%+v, %d writes", got, u.calls.Calls(buckettest.Put))
		}
		b.wantContent(strings.Repeat("a", 2*maxIDs) + "b")
	})
}

type oversized struct{ bucket.Store }

func (v oversized) Get(ctx context.Context, ref event.Object) (bucket.Info, io.ReadCloser, error) {
	info, body, err := v.Store.Get(ctx, ref)
	info.Size = MaxUpdate + 1
	return info, body, err
}

func TestUpdateSizeLimit(t *testing.T) {
	inBubble(t, func(b *bubble) {
		b.put("k", "a", nil)
		_, err := Proved(oversized{b.store}, "b").Update(b.Context(), "k", appendText("b"), UpdateConfig{})
		b.wantError(err, ErrConfig, "s3://b/k", "67108865 bytes", "nothing was written")
		u := b.user()
		_, err = u.bucket.Update(b.Context(), "k", func(_ context.Context, c Content) (Content, error) {
			c.Body = make([]byte, MaxUpdate+1)
			return c, nil
		}, UpdateConfig{})
		b.wantError(err, ErrConfig, "s3://b/k", "67108865 bytes")
		u.wantNoWrites("a")
		for _, c := range []UpdateConfig{{Tries: -1}, {Fence: -1}} {
			_, err := u.update("b", c)
			b.wantError(err, ErrConfig, "must not be negative")
		}
		u.wantNoWrites("a")
	})
}

func TestUpdateWithLargeMetadata(t *testing.T) {
	for _, c := range []struct{ own, ids int }{{0, maxIDs}, {900, maxIDs}, {1500, 25}, {1800, minIDs}, {1820, 0}, {3000, 0}} {
		inBubble(t, func(b *bubble) {
			b.put("k", "", map[string]string{"own": strings.Repeat("x", c.own)})
			u := b.user()
			if c.ids == 0 {
				_, err := u.update(".", UpdateConfig{Fence: 1 << 61})
				b.wantError(err, ErrConfig, "s3://b/k", "metadata", "nothing was written")
				u.wantNoWrites("")
				return
			}
			for range 2 * maxIDs {
				_, err := u.update(".", UpdateConfig{Fence: 1 << 61})
				b.noError(err)
			}
			size := 0
			for name, value := range b.metadata() {
				size += len(metadataPrefix) + len(name) + len(value)
			}
			if ids := len(lineageOf(b.metadata()).ids); ids != c.ids || size > maxMetadata {
				b.Errorf("besides %d bytes of other metadata: %d ids in %d bytes, want %d in at most %d", c.own, ids, size, c.ids, maxMetadata)
			}
		})
	}
}
