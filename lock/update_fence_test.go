package lock

import (
	"context"
	"testing"

	"github.com/pawlhq/pawl/bucket/buckettest"
)

// An earlier holder is between its read and its write.
func TestHigherFenceChangesBytes(t *testing.T) {
	set := func(n int) func(context.Context, *jsonCounter) error {
		return func(_ context.Context, c *jsonCounter) error {
			c.N = n
			return nil
		}
	}
	for _, was := range []string{`{"n":1}`, `{"n":1}` + "\n"} {
		inBubble(t, func(b *bubble) {
			b.put("k", was, nil)
			_, err := UpdateJSON(b.Context(), b.user().bucket, "k", set(1), UpdateConfig{Fence: 8})
			b.noError(err)
			u := b.user()
			u.calls.Next(buckettest.Put, buckettest.Between(func() {
				for fence := range int64(4) {
					got, err := UpdateJSON(b.Context(), b.user().bucket, "k", set(1), UpdateConfig{Fence: 10 + fence})
					if b.noError(err); !got.Written {
						b.Error("the fence was not written")
					}
				}
			}))
			_, err = UpdateJSON(b.Context(), u.bucket, "k", set(2), UpdateConfig{Fence: 9})
			b.wantError(err, ErrFenced)
			if _, err := UpdateJSON(b.Context(), u.bucket, "k", set(3), UpdateConfig{Fence: 13}); err != nil {
				b.Error(err)
			}
			b.wantContent(`{"n":3}` + "\n")
		})
	}
}
