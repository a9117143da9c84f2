package engine_test

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/pawlhq/pawl/engine"
	"github.com/pawlhq/pawl/event"
	"github.com/pawlhq/pawl/ledger"
)

const cycleEvents = 500

// BenchmarkCycle measures the engine alone. The ledger applies every swap at once.
func BenchmarkCycle(b *testing.B) {
	for _, tasks := range []int{cycleEvents, 16} {
		b.Run(fmt.Sprintf("tasks=%d", tasks), func(b *testing.B) { benchmarkCycle(b, tasks) })
	}
}

func benchmarkCycle(b *testing.B, tasks int) {
	e := engine.New(engine.Config{
		Owner: "a", Pipelines: []string{"p"}, Policy: ledger.DefaultPolicy(),
		Tasks: tasks, Bytes: 1 << 30, Swaps: 2, Batch: 500, Cache: 10_000,
		Rand: rand.New(rand.NewChaCha8([32]byte{1})),
	})
	messages := cycleMessages(b)
	b.ReportAllocs()
	for n := 0; b.Loop(); n++ {
		cycle(b, e, messages, n)
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*cycleEvents), "ns/event")
	b.ReportMetric(float64(e.Stats.Swaps)/float64(e.Stats.Raised), "writes/event")
	if e.Stats.Completed != int64(b.N*cycleEvents) || !e.Idle() {
		b.Fatalf("%d of %d events are completed", e.Stats.Completed, b.N*cycleEvents)
	}
}

func cycleMessages(b *testing.B) []engine.Deliver {
	b.Helper()
	seq, err := event.ParseSequencer("0055AED6DCD90281E5")
	if err != nil {
		b.Fatal(err)
	}
	var messages []engine.Deliver
	for i := range cycleEvents {
		if i%10 == 0 {
			messages = append(messages, engine.Deliver{ID: uint64(i)})
		}
		m := &messages[len(messages)-1]
		m.Items = append(m.Items, engine.Item{Trusted: true, Event: event.Event{
			Kind: event.Created, Sequencer: seq, Time: start, ETag: "d41d8cd98f00b204e9800998ecf8427e", Size: 1000, Name: "ObjectCreated:Put",
		}})
	}
	return messages
}

func cycle(b *testing.B, e *engine.Engine, messages []engine.Deliver, n int) {
	inputs := make([]engine.Input, len(messages))
	for i, m := range messages {
		for j := range m.Items {
			m.Items[j].Key = ledger.RowKey{Pipeline: "p", Bucket: "photos", Key: fmt.Sprintf("in/%d/%d/%d.jpg", n, i, j)}
		}
		inputs[i] = m
	}
	answered := 0
	for len(inputs) > 0 {
		actions := e.Step(start, inputs...)
		inputs = inputs[:0]
		for _, a := range actions {
			switch a := a.(type) {
			case engine.Swap:
				out := make([]ledger.Outcome, len(a.Changes))
				for i := range out {
					out[i].Applied = true
				}
				inputs = append(inputs, engine.Swapped{Batch: a.Batch, Outcomes: out})
			case engine.Start:
				f := engine.Finished{Key: a.Claim.Key, Fence: a.Claim.Fence, Result: engine.Completed, Acted: true}
				f.Ending.Read.Kind = event.Created
				inputs = append(inputs, f)
			case engine.Answer:
				answered++
			}
		}
	}
	if answered != len(messages) {
		b.Fatalf("%d of %d messages are answered", answered, len(messages))
	}
}
