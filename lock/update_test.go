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

// adds is a change that adds a text.
func adds(text string) func(context.Context, Content) (Content, error) {
	return func(_ context.Context, c Content) (Content, error) {
		c.Body = append(c.Body, text...)
		return c, nil
	}
}

// update adds a text to the object "k".
func (u *user) update(text string, c UpdateConfig) (Updated, error) {
	return u.bucket.Update(u.Context(), "k", adds(text), c)
}

// is checks what is stored at "k".
func (b *bubble) is(want string) {
	b.Helper()
	if got := b.content("k"); got != want {
		b.Errorf("there is %q, want %q", got, want)
	}
}

// untouched checks that an update has written nothing.
func (u *user) untouched(want string) {
	u.Helper()
	u.is(want)
	if n := u.calls.Calls(buckettest.Put); n > 0 {
		u.Errorf("%d writes", n)
	}
}

func (b *bubble) metadata() map[string]string {
	b.Helper()
	info, err := b.store.Head(b.Context(), event.Object{Bucket: "b", Key: "k"})
	b.done(err)
	return info.Metadata
}

func TestUpdateCreates(t *testing.T) {
	inBubble(t, func(b *bubble) {
		u := b.user()
		_, err := u.update("a", UpdateConfig{})
		b.refused(err, bucket.ErrNotFound, "s3://b/k", "create it first")
		u.untouched("")
		got, err := u.bucket.Update(b.Context(), "k", func(_ context.Context, c Content) (Content, error) {
			if diff := cmp.Diff(Content{}, c); diff != "" {
				b.Errorf("it begins with %s", diff)
			}
			return c, nil
		}, UpdateConfig{Create: true})
		b.done(err)
		if keys := b.keys(); !got.Written || got.Tries != 1 || len(keys) != 1 {
			b.Errorf("%+v, there is %q: want an empty object", got, keys)
		}
		got, err = u.update("a", UpdateConfig{})
		if b.done(err); !got.Written || string(got.Content.Body) != "a" || !got.Content.Exists {
			b.Errorf("%+v", got)
		}
		b.is("a")
	})
}

func TestUpdateCarriesForward(t *testing.T) {
	inBubble(t, func(b *bubble) {
		mine := map[string]string{"colour": "red", "x-pawl": "mine"}
		b.put("k", "a", mine)
		_, err := b.user().update("b", UpdateConfig{Fence: 7})
		b.done(err)
		_, err = b.user().bucket.Update(b.Context(), "k", func(_ context.Context, c Content) (Content, error) {
			if diff := cmp.Diff(Content{Exists: true, Body: []byte("ab"), ContentType: "text/plain", Metadata: mine}, c); diff != "" {
				b.Errorf("it sees (-want +got):\n%s", diff)
			}
			c.Body[0] = 'x' // what it was given is its own
			c.Metadata["shape"] = "round"
			delete(c.Metadata, "colour")
			c.Metadata[metaFence] = "1" // and this is Pawl's
			c.ContentType = "text/html"
			return c, nil
		}, UpdateConfig{})
		b.done(err)
		b.is("xb")
		m := b.metadata()
		if ids := strings.Split(m[metaIDs], ","); len(ids) != 2 || len(ids[0]) != idSize || ids[0] == ids[1] {
			b.Errorf("the ids are %q", ids)
		}
		delete(m, metaIDs)
		if diff := cmp.Diff(map[string]string{"x-pawl": "mine", "shape": "round", metaCount: "2", metaFence: "7"}, m); diff != "" {
			b.Errorf("metadata (-want +got):\n%s", diff)
		}
		info, err := b.store.Head(b.Context(), event.Object{Bucket: "b", Key: "k"})
		if b.done(err); info.ContentType != "text/html" {
			b.Errorf("content type %s", info.ContentType)
		}
	})
}

func TestUpdateOfTheSame(t *testing.T) {
	inBubble(t, func(b *bubble) {
		b.put("k", "a", map[string]string{"colour": "red"})
		u := b.user()
		got, err := u.bucket.Update(b.Context(), "k", func(_ context.Context, c Content) (Content, error) {
			c.Body, c.Metadata, c.Exists = bytes.Clone(c.Body), maps.Clone(c.Metadata), false
			return c, nil
		}, UpdateConfig{})
		b.done(err)
		if want := (Updated{Tries: 1, Content: Content{Exists: true, Body: []byte("a"), ContentType: "text/plain", Metadata: map[string]string{"colour": "red"}}}); cmp.Diff(want, got) != "" {
			b.Errorf("%+v, want %+v", got, want)
		}
		u.untouched("a")
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
			if b.done(err); !got.Written {
				b.Errorf("%+v is not written", got)
			}
		}
	})
}

func TestUpdateThatFails(t *testing.T) {
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
		u.untouched("a")
	})
}

func TestUpdateUnderAFence(t *testing.T) {
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
				b.done(err)
				continue
			}
			b.refused(err, ErrFenced, "s3://b/k", fmt.Sprint(c.fence), "the lock has had a later holder")
			u.untouched(was)
		}
		b.is("abdf")
	})
}

func TestUpdateThatIsContended(t *testing.T) {
	inBubble(t, func(b *bubble) {
		b.put("k", "", nil)
		u, n := b.user(), 0
		_, err := u.bucket.Update(b.Context(), "k", func(ctx context.Context, c Content) (Content, error) {
			n++
			_, err := b.user().update("x", UpdateConfig{})
			b.done(err)
			return adds("y")(ctx, c)
		}, UpdateConfig{Tries: 7})
		b.refused(err, ErrContended, "s3://b/k", "7 times", "nothing was written")
		b.is("xxxxxxx")
		if n != 7 {
			b.Errorf("changed %d times", n)
		}
	})
}

// TestUpdateThatLandedBeforeAnother: its answer is lost, and others update before
// it looks. Its id is found behind theirs.
func TestUpdateThatLandedBeforeAnother(t *testing.T) {
	for _, others := range []int{1, 5, maxIDs - 1} {
		inBubble(t, func(b *bubble) {
			b.put("k", "", nil)
			u := b.user()
			u.calls.Next(buckettest.Put, landedBefore(func() { b.updates(others) }))
			got, err := u.update("b", UpdateConfig{})
			if b.done(err); !got.Written || got.Tries != 1 {
				b.Errorf("%+v", got)
			}
			b.is("b" + strings.Repeat("a", others))
		})
	}
}

// landedBefore is a write that lands, and whose answer is lost; then comes more.
func landedBefore(more func()) buckettest.Fault {
	return func(ctx context.Context, do func(context.Context) error) error {
		err := buckettest.Landed(ctx, do)
		more()
		return err
	}
}

// updates adds as many texts to the object "k", of others.
func (b *bubble) updates(n int) {
	b.Helper()
	u := b.user()
	for range n {
		_, err := u.update("a", UpdateConfig{})
		b.done(err)
	}
}

func TestUpdateThatIsUnsure(t *testing.T) {
	for name, more := range map[string]func(b *bubble){
		"overwritten by another program": func(b *bubble) { b.put("k", "mine", nil) },
		"deleted":                        func(b *bubble) { b.remove("k") },
		"deleted and created anew":       func(b *bubble) { b.remove("k"); b.put("k", "", nil); b.updates(4) },
		"beyond its lineage":             func(b *bubble) { b.updates(maxIDs + 1) },
	} {
		t.Run(name, func(t *testing.T) {
			for _, fault := range []func(func()) buckettest.Fault{landedBefore, lostBefore} {
				inBubble(t, func(b *bubble) {
					b.put("k", "", nil)
					b.updates(2)
					u := b.user()
					u.calls.Next(buckettest.Put, fault(func() { more(b) }))
					_, err := u.update("b", UpdateConfig{Create: true})
					b.refused(err, ErrUnsure, "s3://b/k", "look at the object")
					b.refused(err, bucket.ErrUnclear)
					if n := u.calls.Calls(buckettest.Put); n != 1 {
						b.Errorf("%d writes", n)
					}
				})
			}
		})
	}
}

// TestUpdateThatCreatedWhatIsGone cannot tell that from a write that never landed.
func TestUpdateThatCreatedWhatIsGone(t *testing.T) {
	inBubble(t, func(b *bubble) {
		u := b.user()
		u.calls.Next(buckettest.Put, landedBefore(func() { b.remove("k") }))
		_, err := u.update("b", UpdateConfig{Create: true})
		b.done(err)
		b.is("b")
		if n := u.calls.Calls(buckettest.Put); n != 2 {
			b.Errorf("%d writes, want the one of what is gone, and another", n)
		}
	})
}

// lostBefore is a write that is lost; then comes more.
func lostBefore(more func()) buckettest.Fault {
	return func(ctx context.Context, do func(context.Context) error) error {
		more()
		return buckettest.Lost(ctx, do)
	}
}

// TestUpdateThatIsRefused by the condition is believed to be, also where another
// program overwrote the object: it begins again.
func TestUpdateThatIsRefused(t *testing.T) {
	inBubble(t, func(b *bubble) {
		b.put("k", "", nil)
		b.updates(2)
		u := b.user()
		u.calls.Next(buckettest.Put, buckettest.Between(func() { b.put("k", "mine", nil) }))
		got, err := u.update("b", UpdateConfig{})
		if b.done(err); got.Tries != 2 {
			b.Errorf("%+v", got)
		}
		b.is("mineb")
		u.calls.Next(buckettest.Put, buckettest.Between(func() { b.remove("k") }))
		_, err = u.update("c", UpdateConfig{})
		b.refused(err, bucket.ErrNotFound)
		b.is("")
	})
}

func TestUpdateRefusedByTheStore(t *testing.T) {
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
				b.refused(err, kind, "s3://b/k")
				if errors.Is(err, ErrUnsure) || time.Since(began) > 0 {
					b.Errorf("%v after %v: it is sure", err, time.Since(began))
				}
				b.is("a")
			})
		}
	}
}

// TestUpdateWithoutAnAnswer is sent again, and so is not unsure.
func TestUpdateWithoutAnAnswer(t *testing.T) {
	inBubble(t, func(b *bubble) {
		b.put("k", "a", nil)
		u := b.user()
		u.calls.Next(buckettest.Put, silent)
		began := time.Now()
		_, err := u.update("b", UpdateConfig{})
		b.done(err)
		b.about(time.Since(began), callTimeout, 2*callTimeout)
		b.is("ab")
	})
}

func TestUpdateThatGivesUp(t *testing.T) {
	inBubble(t, func(b *bubble) {
		b.put("k", "a", nil)
		u := b.user()
		for range 1000 {
			u.calls.Next(buckettest.Get, buckettest.Answer(bucket.ErrUnavailable))
		}
		_, err := u.bucket.Update(b.within(time.Second), "k", adds("b"), UpdateConfig{})
		b.refused(err, context.DeadlineExceeded, "nothing was written")
		began := time.Now()
		_, err = u.update("b", UpdateConfig{})
		b.refused(err, bucket.ErrUnavailable, "nothing was written")
		b.about(time.Since(began), outageTimeout, outageTimeout+2*time.Second)

		u = b.user()
		u.down()
		_, err = u.bucket.Update(b.within(time.Minute), "k", adds("b"), UpdateConfig{})
		b.refused(err, ErrUnsure)
		b.refused(err, context.DeadlineExceeded)
		b.is("a")

		ctx, cancel := context.WithCancel(b.Context())
		u = b.user()
		_, err = u.bucket.Update(ctx, "k", func(ctx context.Context, c Content) (Content, error) {
			cancel()
			return c, ctx.Err()
		}, UpdateConfig{})
		b.refused(err, context.Canceled)
		u.untouched("a")
	})
}

// TestUpdateThatTakesLong looks before it writes, for others may have updated the
// object more often than their ids are kept.
func TestUpdateThatTakesLong(t *testing.T) {
	inBubble(t, func(b *bubble) {
		b.put("k", "", nil)
		u, n := b.user(), 0
		got, err := u.bucket.Update(b.Context(), "k", func(ctx context.Context, c Content) (Content, error) {
			if n++; n == 1 {
				sleep(time.Second)
				b.updates(2 * maxIDs)
			}
			return adds("b")(ctx, c)
		}, UpdateConfig{})
		if b.done(err); got.Tries != 2 || u.calls.Calls(buckettest.Put) != 1 {
			b.Errorf("%+v, %d writes", got, u.calls.Calls(buckettest.Put))
		}
		b.is(strings.Repeat("a", 2*maxIDs) + "b")
	})
}

// vast is a store whose objects are larger than they seem.
type vast struct{ bucket.Store }

func (v vast) Get(ctx context.Context, ref event.Object) (bucket.Info, io.ReadCloser, error) {
	info, body, err := v.Store.Get(ctx, ref)
	info.Size = MaxUpdate + 1
	return info, body, err
}

func TestUpdateThatIsTooLarge(t *testing.T) {
	inBubble(t, func(b *bubble) {
		b.put("k", "a", nil)
		_, err := Proved(vast{b.store}, "b").Update(b.Context(), "k", adds("b"), UpdateConfig{})
		b.refused(err, ErrConfig, "s3://b/k", "67108865 bytes", "nothing was written")
		u := b.user()
		_, err = u.bucket.Update(b.Context(), "k", func(_ context.Context, c Content) (Content, error) {
			c.Body = make([]byte, MaxUpdate+1)
			return c, nil
		}, UpdateConfig{})
		b.refused(err, ErrConfig, "s3://b/k", "67108865 bytes")
		u.untouched("a")
		for _, c := range []UpdateConfig{{Tries: -1}, {Fence: -1}} {
			_, err := u.update("b", c)
			b.refused(err, ErrConfig, "must be positive")
		}
		u.untouched("a")
	})
}

// TestUpdateBesideLargeMetadata: the lineage takes what room the user's metadata
// leave, and an update is refused before anything is written where that is too
// little.
func TestUpdateBesideLargeMetadata(t *testing.T) {
	for _, c := range []struct{ own, ids int }{{0, maxIDs}, {900, maxIDs}, {1500, 25}, {1800, minIDs}, {1820, 0}, {3000, 0}} {
		inBubble(t, func(b *bubble) {
			b.put("k", "", map[string]string{"own": strings.Repeat("x", c.own)})
			u := b.user()
			if c.ids == 0 {
				_, err := u.update(".", UpdateConfig{Fence: 1 << 61})
				b.refused(err, ErrConfig, "s3://b/k", "metadata", "nothing was written")
				u.untouched("")
				return
			}
			for range 2 * maxIDs {
				_, err := u.update(".", UpdateConfig{Fence: 1 << 61})
				b.done(err)
			}
			size := 0
			for name, value := range b.metadata() {
				size += len(metadataPrefix) + len(name) + len(value)
			}
			if ids := len(lineageOf(b.metadata()).ids); ids != c.ids || size > maxMetadata {
				b.Errorf("beside %d bytes: %d ids in %d bytes, want %d in at most %d", c.own, ids, size, c.ids, maxMetadata)
			}
		})
	}
}
