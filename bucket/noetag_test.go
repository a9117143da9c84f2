package bucket_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/pawlhq/pawl/bucket"
	"github.com/pawlhq/pawl/bucket/membucket"
	"github.com/pawlhq/pawl/event"
)

type noETags struct{ bucket.Store }

func (s noETags) Head(ctx context.Context, ref event.Object) (bucket.Info, error) {
	info, err := s.Store.Head(ctx, ref)
	info.ETag = ""
	return info, err
}

func TestPinNeedsAnETag(t *testing.T) {
	store := membucket.New(time.Now, []string{"out"})
	ref := event.Object{Bucket: "out", Key: "k"}
	if _, err := bucket.Pin(t.Context(), noETags{store}, ref); err != nil {
		t.Errorf("absent: %v", err)
	}
	if _, err := store.Put(t.Context(), ref, bucket.Object{Body: strings.NewReader("x"), Size: 1}, bucket.Condition{}); err != nil {
		t.Fatal(err)
	}
	if _, err := bucket.Pin(t.Context(), noETags{store}, ref); !errors.Is(err, bucket.ErrUnavailable) {
		t.Errorf("an object without an ETag was pinned: %v", err)
	}
}
