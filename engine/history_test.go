package engine_test

import (
	"container/heap"
	"errors"
	"flag"
	"fmt"
	"hash"
	"hash/fnv"
	"math/rand/v2"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pawlhq/pawl/engine"
	"github.com/pawlhq/pawl/event"
	"github.com/pawlhq/pawl/ledger"
)

var (
	firstSeed = flag.Uint64("seed", 0, "the first seed of TestHistories; 0: a fresh one")
	histories = flag.Int("histories", 0, fmt.Sprintf("number of histories that TestHistories plays; 0 means %d, or %d with -short", played, min(played, 200)))
	narrate   = flag.Bool("narrate", false, "print what TestHistories does")
)

// TestHistories plays random histories of a few workers over one ledger, with
// everything that goes wrong in life: see [history.disaster] and [actor.swap].
// Each must keep what watch_test.go demands.
func TestHistories(t *testing.T) {
	first := *firstSeed
	if first == 0 {
		first = rand.Uint64N(1 << 32)
	}
	count := *histories
	switch {
	case count == 0 && testing.Short():
		count = min(played, 200)
	case count == 0:
		count = played
	}
	t.Logf("%d histories from seed %d on", count, first)
	synctest.Test(t, func(t *testing.T) { // the ledger's waits take no time
		for i := range uint64(count) {
			seed := first + i
			trace, err := play(t, seed)
			if err == nil && i%20 == 0 {
				var again uint64
				if again, err = play(t, seed); err == nil && again != trace {
					err = errors.New("the same seed led to other actions")
				}
			}
			if err != nil {
				t.Fatalf("%v\nrepeat it with: go test ./engine -run TestHistories -histories=1 -seed=%d -narrate", err, seed)
			}
		}
	})
}

// history is one world with its own time, in which things are due.
type history struct {
	t      *testing.T
	rng    *rand.Rand
	now    time.Time
	agenda agenda
	trace  hash.Hash64

	cfg      engine.Config
	store    *watched
	actors   []*actor // every one that ever was
	messages []*message
	keys     []ledger.RowKey
	poison   map[ledger.RowKey]bool
	handled  map[ledger.RowKey]bool // by an attempt that began when all was calm
	calm     time.Time              // when nothing goes wrong any more
	lastID   uint64
	err      error // the first violation
}

// message is a delivery and its redeliveries.
type message struct {
	items []engine.Item
	acked bool
}

// patience is how long after the last fault everything must be at rest.
const patience = 15 * time.Minute

// tooMany steps are ten times those of a busy history.
const tooMany = 50_000

// play returns a digest of everything that the engines decided.
func play(t *testing.T, seed uint64) (trace uint64, err error) {
	rng := rand.New(rand.NewPCG(seed, 7))
	h := &history{
		t: t, rng: rng, now: start, trace: fnv.New64a(), poison: map[ledger.RowKey]bool{}, handled: map[ledger.RowKey]bool{},
		calm: start.Add(time.Duration(1+rng.IntN(4)) * time.Minute), store: newWatched(),
	}
	h.store.history = h
	h.configure()
	for range 2 + rng.IntN(2) {
		h.hire()
	}
	h.publish()
	for range rng.IntN(5) {
		h.at(h.before(h.calm), h.disaster)
	}
	h.at(h.calm.Add(2*time.Minute), h.noMore)
	for steps := 0; h.err == nil && h.now.Before(h.calm.Add(patience)) && !(h.now.After(h.calm) && h.atRest()); steps++ {
		if h.next(); steps == tooMany {
			h.fail("%d steps: an engine is called again and again, and does nothing", steps)
		}
	}
	if h.err == nil {
		h.err = h.store.final()
	}
	return h.trace.Sum64(), h.err
}

func (h *history) configure() {
	h.cfg = engine.Config{
		Pipelines: []string{"trusted", "untrusted"}, Policy: policy(),
		Tasks: 1 + h.rng.IntN(4), Bytes: int64(h.pick(10, 1000)), Swaps: 1 + h.rng.IntN(2), Batch: 1 + h.rng.IntN(4),
		Cache: 1 + h.rng.IntN(5), Sweep: time.Duration(2+h.rng.IntN(15)) * time.Second,
		Outage: time.Duration(h.pick(0, 1, 3)) * time.Minute,
	}
	if h.chance(30) {
		h.cfg.AckSettled = true
		if h.chance(50) {
			h.cfg.Sweep = 0 // redeliveries bring all that must be done again
		}
	}
	for i := range 1 + h.rng.IntN(3) {
		for _, p := range h.cfg.Pipelines {
			k := ledger.RowKey{Pipeline: p, Bucket: "b", Key: "k" + strconv.Itoa(i)}
			h.keys = append(h.keys, k)
			h.poison[k] = h.chance(10)
		}
	}
}

// publish sends some events, each in several messages, out of order.
func (h *history) publish() {
	for i := range 1 + h.rng.IntN(12) {
		key := h.keys[h.rng.IntN(len(h.keys))]
		seq, err := event.ParseSequencer(fmt.Sprintf("%04X", 1+i))
		if err != nil {
			h.t.Fatal(err)
		}
		happened := h.before(h.calm)
		item := engine.Item{Key: key, Trusted: key.Pipeline == "trusted", Event: event.Event{
			Object: key.Object(), Kind: event.Created, Time: happened.Truncate(time.Second), Sequencer: seq,
			Name: "e" + strconv.Itoa(i), Size: int64(h.rng.IntN(12)),
		}}
		if h.chance(20) {
			item.Event.Kind = event.Removed
		}
		if !item.Trusted {
			item.Event.Sequencer = event.Sequencer{}
		}
		for range 1 + h.rng.IntN(3) {
			m := h.message(item)
			h.at(happened.Add(h.upTo(time.Duration(h.pick(1, 60))*time.Second)), func() { h.deliver(m) })
		}
	}
}

// message puts an item into a message that is not sent yet, or into a new one.
func (h *history) message(item engine.Item) *message {
	if len(h.messages) > 0 && h.chance(20) {
		m := h.messages[len(h.messages)-1]
		m.items = append(m.items, item)
		return m
	}
	m := &message{items: []engine.Item{item}}
	h.messages = append(h.messages, m)
	return m
}

// deliver gives a message to some worker, now or when there is one.
func (h *history) deliver(m *message) {
	a := h.someone()
	if a == nil {
		h.after(time.Second, func() { h.deliver(m) })
		return
	}
	h.lastID++
	a.open[h.lastID] = m
	a.tell(engine.Deliver{ID: h.lastID, Items: m.items})
}

// disaster hits some worker, or is an operator's redrive.
func (h *history) disaster() {
	a := h.someone()
	if a == nil {
		return
	}
	switch h.rng.IntN(6) {
	case 0, 1:
		a.crash()
	case 2:
		a.stop()
	case 3:
		a.stop()
		h.after(h.upTo(20*time.Second), a.stopHard)
	case 4:
		a.frozen = h.now.Add(h.upTo(90 * time.Second))
	case 5:
		if h.cfg.Sweep == 0 {
			return // nobody would notice
		}
		h.redrive(h.keys[h.rng.IntN(len(h.keys))])
	}
}

// noMore tells the workers that nothing follows. What comes all the same, as it
// was handed back, is taken.
func (h *history) noMore() {
	for _, a := range h.actors {
		a.tell(engine.NoMore{})
	}
}

func (h *history) redrive(key ledger.RowKey) {
	rows, err := h.store.Load(h.t.Context(), []ledger.RowKey{key})
	if err != nil || len(rows) == 0 {
		return
	}
	row := rows[0].Redrive(false, h.now)
	row.Nonce[0], row.Nonce[15] = byte(h.rng.Uint32()), 0xFF
	if _, err := h.store.Swap(h.t.Context(), []ledger.Change{{Key: key, Expect: rows[0].Nonce, Row: &row}}); err != nil {
		h.t.Fatal(err)
	}
}

// hire starts another worker.
func (h *history) hire() {
	a := &actor{
		history: h, name: "w" + strconv.Itoa(len(h.actors)), skew: h.upTo(h.cfg.Policy.Skew),
		tasks: map[ledger.RowKey]*task{}, sent: map[ledger.RowKey]bool{}, had: map[int64]bool{}, open: map[uint64]*message{},
		swaps: map[uint64]int{}, sweeping: map[string]bool{},
	}
	cfg := h.cfg
	cfg.Owner, cfg.Rand = a.name, rand.New(rand.NewPCG(h.rng.Uint64(), 0))
	a.engine = engine.New(cfg)
	h.actors = append(h.actors, a)
	a.tell(engine.Tick{})
}

// someone returns a worker that takes messages.
func (h *history) someone() *actor {
	var some []*actor
	for _, a := range h.actors {
		if !a.gone && !a.stopping {
			some = append(some, a)
		}
	}
	if len(some) == 0 {
		return nil
	}
	return some[h.rng.IntN(len(some))]
}

// fail notes the first violation.
func (h *history) fail(format string, args ...any) {
	if h.err == nil {
		h.err = fmt.Errorf("+%v: "+format, append([]any{h.now.Sub(start)}, args...)...)
	}
}

func (h *history) faulty() bool                     { return h.now.Before(h.calm) }
func (h *history) chance(percent int) bool          { return h.rng.IntN(100) < percent }
func (h *history) pick(choices ...int) int          { return choices[h.rng.IntN(len(choices))] }
func (h *history) after(d time.Duration, do func()) { h.at(h.now.Add(d), do) }

// upTo returns a random time below d.
func (h *history) upTo(d time.Duration) time.Duration {
	return time.Duration(h.rng.Int64N(int64(d))).Truncate(time.Millisecond)
}

func (h *history) before(t time.Time) time.Time { return h.now.Add(h.upTo(t.Sub(h.now))) }

func (h *history) at(t time.Time, do func()) {
	h.agenda.count++
	heap.Push(&h.agenda, appointment{t, h.agenda.count, do})
}

// next does what is due next.
func (h *history) next() {
	if h.agenda.Len() == 0 {
		h.now = h.calm.Add(patience)
		return
	}
	next := heap.Pop(&h.agenda).(appointment)
	h.now = next.at
	next.do()
}

// agenda is what will happen, in order of time.
type agenda struct {
	list  []appointment
	count int
}

type appointment struct {
	at time.Time
	n  int
	do func()
}

func (a *agenda) Len() int { return len(a.list) }
func (a *agenda) Less(i, j int) bool {
	if c := a.list[i].at.Compare(a.list[j].at); c != 0 {
		return c < 0
	}
	return a.list[i].n < a.list[j].n
}
func (a *agenda) Swap(i, j int) { a.list[i], a.list[j] = a.list[j], a.list[i] }
func (a *agenda) Push(x any)    { a.list = append(a.list, x.(appointment)) }
func (a *agenda) Pop() any {
	last := a.list[len(a.list)-1]
	a.list = a.list[:len(a.list)-1]
	return last
}
