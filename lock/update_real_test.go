package lock_test

import (
	"bytes"
	"strings"
	"testing"

	"github.com/pawlhq/pawl/bucket"
	"github.com/pawlhq/pawl/event"
	"github.com/pawlhq/pawl/lock"
	"github.com/pawlhq/pawl/proof/servertest"
)

func TestUpdatesWithLargeMetadata(t *testing.T) {
	servertest.Each(t, servertest.Options{}, func(t *testing.T, server *servertest.Server) {
		name := server.NewBucket(t)
		store := newCountingProxy(t, server, 0).store(t, server)
		own := strings.Repeat("x", 1800)
		_, err := store.Put(t.Context(), event.Object{Bucket: name, Key: "count"}, bucket.Object{
			Body: bytes.NewReader(nil), Metadata: map[string]string{"own": own},
		}, bucket.Condition{})
		if err != nil {
			t.Fatal(err)
		}
		b := lock.Proved(store, name)
		const updates = 60
		for range updates {
			if err := increment(t.Context(), b); err != nil {
				t.Fatal(err)
			}
		}
		info, err := store.Head(t.Context(), event.Object{Bucket: name, Key: "count"})
		if err != nil {
			t.Fatal(err)
		}
		if info.Metadata["own"] != own || info.Size != updates {
			t.Errorf("%d bytes after %d updates, metadata %v", info.Size, updates, info.Metadata)
		}
	})
}
