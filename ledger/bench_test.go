package ledger_test

import (
	"testing"

	"github.com/pawlhq/pawl/event"
	"github.com/pawlhq/pawl/ledger"
)

func settledRow(b *testing.B) *ledger.Row {
	b.Helper()
	p := ledger.DefaultPolicy()
	seq, err := event.ParseSequencer("0055AED6DCD90281E5")
	if err != nil {
		b.Fatal(err)
	}
	r := ledger.Row{RowKey: ledger.RowKey{Pipeline: "p", Bucket: "photos", Key: "in/cat.jpg"}}
	e := &event.Event{Object: r.Object(), Kind: event.Created, Sequencer: seq, Time: epoch, ETag: "d41d8cd98f00b204e9800998ecf8427e", Size: 1000, Name: "ObjectCreated:Put"}
	r, _ = r.Observe(e, true, epoch)
	r, a, _ := r.Claim("host/24359/ec5d5450a931", &p, epoch)
	r, _ = r.Complete(&a, &ledger.Ending{Read: ledger.Read{Kind: event.Created, Identity: r.Want.Identity}}, true, &p, epoch)
	return &r
}

func BenchmarkEncode(b *testing.B) {
	r := settledRow(b)
	for b.Loop() {
		body, err := ledger.Encode(r)
		if err != nil {
			b.Fatal(err)
		}
		b.SetBytes(int64(len(body)))
	}
}

func BenchmarkDecode(b *testing.B) {
	body, err := ledger.Encode(settledRow(b))
	if err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		if r := ledger.Decode(ledger.RowKey{}, ledger.Nonce{}, body); r.Unreadable != nil {
			b.Fatal(r.Unreadable)
		}
	}
}
