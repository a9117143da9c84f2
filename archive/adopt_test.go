package archive_test

import (
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/pawlhq/pawl/archive"
	"github.com/pawlhq/pawl/archive/encode"
	"github.com/pawlhq/pawl/bucket"
	"github.com/pawlhq/pawl/event"
	"github.com/pawlhq/pawl/ledger"
	"github.com/pawlhq/pawl/store/memory"
)

// published stores entries as the published program does: an object for each minute of
// a batch, with the first and the last number in its key.
func (p *place) published(batch []archive.Entry) (keys []string) {
	p.Helper()
	groups := map[time.Time][]archive.Entry{}
	for _, e := range batch {
		at := e.Arrival.Truncate(time.Minute)
		groups[at] = append(groups[at], e)
	}
	for at, group := range groups {
		var items []string
		for _, e := range group {
			for _, r := range e.Records {
				items = append(items, fmt.Sprintf(`{"Data":%q,"SequenceNumber":%q,"SubSequenceNumber":%d,"PartitionKey":%q,"ApproximateArrivalTimestamp":%d}`,
					base64.StdEncoding.EncodeToString(r.Data), r.Number, max(r.Sub, 0), r.PartitionKey, r.Arrival.UnixMilli()))
			}
		}
		key := fmt.Sprintf("p/%s/%019d-%s-%s", at.Format("2006/01/02/15/04"), math.MaxInt64-at.UnixMilli(), group[0].Number, group[len(group)-1].Number)
		p.object(key, "["+strings.Join(items, ",")+"]")
		keys = append(keys, key)
	}
	return keys
}

// entries reads a shard from its beginning.
func (p *place) entries(shard string) []archive.Entry {
	p.Helper()
	r, err := p.stream.Open(p.Context(), shard, archive.Position{})
	if err != nil {
		p.Fatal(err)
	}
	var all []archive.Entry
	for {
		page, err := r.Next(p.Context())
		if err != nil {
			p.Fatal(err)
		}
		if len(page.Entries) == 0 {
			return all
		}
		all = append(all, page.Entries...)
	}
}

// copies counts in how many objects each record is, of whatever program.
func (p *place) copies() map[string]int {
	p.Helper()
	n := map[string]int{}
	for info, err := range p.store.List(p.Context(), "b", "p/20", "") {
		if err != nil {
			p.Fatal(err)
		}
		if strings.HasSuffix(info.Key, ".kept") {
			continue
		}
		_, r, err := p.store.Get(p.Context(), event.Object{Bucket: "b", Key: info.Key})
		if err != nil {
			p.Fatal(err)
		}
		body, err := io.ReadAll(r)
		if err != nil {
			p.Fatal(err)
		}
		format := "json"
		if name, err := archive.ParseKey("p/", info.Key); err == nil {
			format = name.Format
		}
		entries, err := encode.Codec{}.Decode(format, p.shardOf(info.Key), body)
		if err != nil {
			p.Fatalf("%s: %v", info.Key, err)
		}
		for _, e := range entries {
			for _, r := range e.Records {
				n[fmt.Sprint(r.Number, " ", max(r.Sub, 0))]++
			}
		}
	}
	return n
}

func (p *place) shardOf(key string) string {
	name, _ := archive.ParseKey("p/", key)
	return name.Shard
}

// adoptable is a stream of two shards of which the published program has stored what it
// does: not all, in ranges that say otherwise, and once an empty list.
func (p *place) adoptable() (keys []string) {
	p.Helper()
	for range 4 {
		for _, id := range p.shards() {
			p.put(id, 10)
			if _, err := p.stream.Put(p.Context(), id, "key", []byte("a"), []byte("b"), []byte("c")); err != nil {
				p.Fatal(err)
			}
		}
		time.Sleep(40 * time.Second)
	}
	for _, id := range p.shards() {
		all := p.entries(id)
		stored := slices.DeleteFunc(slices.Clone(all[:30]), func(e archive.Entry) bool { return e.Number == all[7].Number || e.Number == all[8].Number })
		keys = append(keys, p.published(stored[:12])...)
		keys = append(keys, p.published(stored[12:])...)
	}
	empty := "p/2000/01/01/00/00/0000000000000000001-1-2"
	p.object(empty, "[]")
	return append(keys, empty)
}

// TestAdopted: an archive goes on behind the published program. What that has stored is
// not stored again, what it lost is, and verify knows both.
func TestAdopted(t *testing.T) {
	inPlace(t, 2, func(p *place) {
		keys := p.adoptable()
		if err := run(p.Context(), p.archive("ndjson")); !errors.Is(err, archive.ErrClaimed) || !strings.Contains(err.Error(), "pawl archive recover") {
			t.Fatalf("beside another program's objects: %v", err)
		}
		work := func() {
			t.Helper()
			if _, err := p.archive("ndjson").Recover(p.Context()); err != nil {
				t.Fatal(err)
			}
			stop := p.run(p.archive("ndjson"), p.archive("json"))
			for _, id := range p.shards() {
				p.put(id, 5)
			}
			time.Sleep(2 * time.Minute)
			if err := stop(); err != nil {
				t.Fatal(err)
			}
		}
		work()
		p.ledger = ledger.Over(memory.New())
		work()
		total := 0
		for _, id := range p.shards() {
			total += len(p.entries(id))
		}
		if r := p.verified(p.archive("ndjson"), total); r.Adopted != len(keys) || r.Gaps != 0 {
			t.Errorf("%+v: want %d adopted objects", r, len(keys))
		}
		for record, n := range p.copies() {
			if n != 1 {
				t.Errorf("%s is in %d objects", record, n)
			}
		}
		if n, want := len(p.copies()), 2*(4*(10+3)+2*5); n != want {
			t.Errorf("%d records are stored, want %d", n, want)
		}
		p.tampered(keys[0])
	})
}

// tampered looks whether verify sees that another program's object is there twice, and
// that it is gone.
func (p *place) tampered(key string) {
	p.Helper()
	ref := event.Object{Bucket: "b", Key: key}
	_, r, err := p.store.Get(p.Context(), ref)
	if err != nil {
		p.Fatal(err)
	}
	body, err := io.ReadAll(r)
	if err != nil {
		p.Fatal(err)
	}
	p.object(key+"0", string(body))
	p.finds(archive.Overlap, key+"0")
	for _, k := range []string{key, key + "0"} {
		if err := p.store.Delete(p.Context(), event.Object{Bucket: "b", Key: k}, bucket.Condition{}); err != nil {
			p.Fatal(err)
		}
	}
	p.finds(archive.Damaged, ".kept")
}

func (p *place) finds(kind, key string) {
	p.Helper()
	r, err := p.archive("ndjson").Verify(p.Context(), archive.VerifyOptions{Deep: true})
	if err != nil || !slices.ContainsFunc(r.Findings, func(f archive.Finding) bool { return f.Kind == kind && strings.HasSuffix(f.Keys[0], key) }) {
		p.Errorf("%+v, %v: want %s of %s", r, err, kind, key)
	}
}

// TestOtherPrefix: the registers of an archive are of one prefix. With another one it is
// refused, for what is stored would be looked for where it is not.
func TestOtherPrefix(t *testing.T) {
	inPlace(t, 1, func(p *place) {
		p.put(p.shards()[0], 10)
		stop := p.run(p.archive("ndjson"))
		time.Sleep(time.Minute)
		if err := stop(); err != nil {
			t.Fatal(err)
		}
		a := p.archive("ndjson")
		a.Prefix = "q/"
		if err := run(p.Context(), a); !errors.Is(err, archive.ErrClaimed) || !strings.Contains(err.Error(), "another name") {
			t.Errorf("another prefix: %v", err)
		}
	})
}

// TestNotAdoptable: another program's object that cannot be gone on behind stops the
// shard, and the error says where it is.
func TestNotAdoptable(t *testing.T) {
	for what, spoil := range map[string]func(e archive.Entry) (entries []archive.Entry, body string){
		"in part": func(e archive.Entry) ([]archive.Entry, string) {
			e.Records = e.Records[:1]
			return []archive.Entry{e}, ""
		},
		"is no JSON array": func(e archive.Entry) ([]archive.Entry, string) { return []archive.Entry{e}, "[{" },
	} {
		inPlace(t, 1, func(p *place) {
			if _, err := p.stream.Put(p.Context(), p.shards()[0], "key", []byte("a"), []byte("b")); err != nil {
				t.Fatal(err)
			}
			entries, body := spoil(p.entries(p.shards()[0])[0])
			key := p.published(entries)[0]
			if body != "" {
				p.object(key, body)
			}
			if _, err := p.archive("ndjson").Recover(p.Context()); err != nil {
				t.Fatal(err)
			}
			stop := p.run(p.archive("ndjson"))
			time.Sleep(time.Minute)
			if err := stop(); err != nil {
				t.Fatal(err)
			}
			if said := p.log.String(); !strings.Contains(said, what) || !strings.Contains(said, "s3://b/"+key[:len("p/2000/01/01/00/00")]) {
				t.Errorf("the log says\n%s", said)
			}
			for info, err := range p.store.List(p.Context(), "b", "p/20", "") {
				if err != nil || info.Key != key {
					t.Errorf("%s, %v: only the other program's object was there", info.Key, err)
				}
			}
		})
	}
}
