package sim

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"hash/maphash"
	"reflect"
	"slices"
	"time"

	"github.com/pawlhq/pawl/ledger"
)

// digest tells the states of a small world apart.
type digest [2]uint64

var digestSeeds = [2]maphash.Seed{maphash.MakeSeed(), maphash.MakeSeed()}

// canon writes down the state of a small world: all that decides what can
// happen from here on, and what the invariants go by, and nothing else. Two
// states of one text have the same future, but for the names of things:
//
//   - nonces and numbers of batches and deliveries, which are only ever compared
//     for equality, are written in order of their first appearance;
//   - fences, which are also compared in size, by their rank, or by how far they
//     are ahead of the time;
//   - times by how far off they are. What has passed has passed, and what is far
//     off is far off; but of two verifications it matters which is the later one.
//
// What is private to the shipped code is walked by reflection, every field that
// manners does not name, so that a new one counts without being known here.
type canon struct {
	m       *small
	node    int // whose numbers they are
	b       []byte
	names   []name
	seen    map[pointer]int
	nodes   []*node
	owners  []string // their names
	fences  []ranked
	met     []int64  // all fences
	far     []ranked // times of verifications, and what waits for them
	structs map[reflect.Type][]field
}

// ranked is a place in the text for the rank of a value.
type ranked struct {
	at    int
	value int64
}

// field is a field of a struct that is walked.
type field struct {
	index  int
	manner manner
}

// manner is how a field is written.
type manner uint8

const (
	asIs manner = iota
	omitted
	fixedTime // one that the user's changes alone decide
	isSet     // a time, or a text, that only matters for being there
	since     // a time before now, of a lease
	check     // a time of a verification
	fence
	batch    // its number
	delivery // its number
	owner
)

// manners are those of the fields that are not simply walked. Times are written
// by how far off they are, unless it is said here how else.
var manners = map[string]manner{
	"engine.Engine.cfg":        omitted, // the same for all
	"engine.Engine.now":        omitted, // overwritten by every step
	"engine.Engine.out":        omitted, // emptied by every step
	"engine.Engine.lastBatch":  omitted, // the name of the next
	"engine.Engine.Stats":      omitted,
	"engine.Engine.own":        omitted, // it decides about looks alone, and there are none
	"engine.entry.own":         omitted,
	"engine.entry.since":       omitted, // it is only reported
	"engine.entry.began":       omitted,
	"engine.delivery.came":     omitted,
	"engine.Engine.batches":    batch,
	"engine.Engine.deliveries": delivery,
	"engine.Answer.ID":         delivery,
	"engine.Answer.Raised":     omitted, // it is only counted
	"engine.Answer.Duplicate":  omitted,
	"engine.Answer.Stale":      omitted,
	"engine.Deliver.ID":        delivery,
	"engine.Swap.Batch":        batch,
	"engine.Swapped.Batch":     batch,
	"engine.Sweep.Before":      omitted, // asked already
	"engine.Finished.Fence":    fence,
	"engine.flight.at":         since,

	"ledger.Failure.Message":   isSet,
	"ledger.Row.History":       omitted,
	"ledger.Row.LastError":     isSet,
	"ledger.Row.EventTime":     fixedTime,
	"ledger.Row.CreatedTime":   fixedTime,
	"ledger.Row.CreatedAt":     isSet,
	"ledger.Row.UpdatedAt":     isSet, // it never lies ahead
	"ledger.Row.VerifyAt":      check,
	"ledger.Lease.Owner":       owner,
	"ledger.Lease.Fence":       fence,
	"ledger.Claim.Fence":       fence,
	"ledger.Claim.CreatedTime": fixedTime,
	"ledger.Claim.verifyAt":    check,
	"ledger.Identity.ModTime":  fixedTime,

	"simplelru.LRU.evictList":     omitted, // there is one object only
	"simplelru.LRU.onEvict":       omitted,
	"internal.Entry.next":         omitted,
	"internal.Entry.prev":         omitted,
	"internal.Entry.list":         omitted,
	"internal.Entry.ExpiresAt":    omitted,
	"internal.Entry.ExpireBucket": omitted,
}

// digest sums up the state.
func (c *canon) digest(m *small) digest {
	c.write(m)
	return digest{maphash.Bytes(digestSeeds[0], c.b), maphash.Bytes(digestSeeds[1], c.b)}
}

// write writes the state down. The processes come in an order that goes by what
// they do and not by their names, for they are all alike. Where that says nothing,
// of the two texts there are the smaller one is taken.
func (c *canon) write(m *small) {
	c.m = m
	c.nodes = append(c.nodes[:0], m.nodes...)
	order := c.order()
	if order > 0 {
		slices.Reverse(c.nodes)
	}
	c.compose()
	if order != 0 || len(c.nodes) < 2 {
		return
	}
	one := slices.Clone(c.b)
	slices.Reverse(c.nodes)
	c.compose()
	if bytes.Compare(one, c.b) < 0 {
		c.b = append(c.b[:0], one...)
	}
}

// compose writes the state down, with the processes in their order.
func (c *canon) compose() {
	m := c.m
	c.clear()
	for _, n := range c.nodes {
		c.owners = append(c.owners, n.name)
	}
	c.ints(m.changed, m.crashes, m.stalls)
	for _, msg := range m.messages {
		c.bool(msg.acked)
		c.bool(msg.sent)
	}
	c.walk(reflect.ValueOf(m.store.(*shelf).rows))
	c.objects()
	for i, n := range c.nodes {
		c.node = i
		c.process(n)
	}
	c.node = -1
	c.jobs(nil)
	c.entries()
	alive := len(c.met)
	for _, t := range m.truths {
		if t.thing == m.things[0] {
			c.truth(t, c.met[:alive])
		}
	}
	c.rank(c.fences)
	c.rank(c.far)
}

// order compares the two processes.
func (c *canon) order() int {
	if len(c.nodes) < 2 {
		return 0
	}
	a, b := c.nodes[0], c.nodes[1]
	if order := cmp.Compare(c.busy(a), c.busy(b)); order != 0 {
		return order
	}
	return cmp.Compare(c.alone(a), c.alone(b))
}

// busy is a quick look at a process.
func (c *canon) busy(n *node) (sum uint64) {
	mix := func(v uint64) { sum = (sum ^ v) * 0x9E3779B97F4A7C15 }
	for _, t := range c.m.truths {
		if t.row.Lease.Owner == n.name {
			mix(1)
		}
	}
	mix(uint64(len(n.tasks)))
	mix(uint64(len(n.open)))
	mix(uint64(n.engine.Pending()))
	mix(uint64(min(max(n.tickAt-c.m.Now, 0), near+1))) // what is far off is far off
	for _, t := range c.threads(n) {
		mix(uint64(len(t.heard)))
		mix(uint64(len(jobOf(t).what)))
	}
	return sum
}

// alone is the state of a process where there is nothing else.
func (c *canon) alone(n *node) string {
	c.clear()
	c.owners = append(c.owners, n.name)
	c.process(n)
	c.rank(c.fences)
	c.rank(c.far)
	return string(c.b)
}

func (c *canon) clear() {
	c.b, c.fences, c.met, c.far, c.owners, c.names = c.b[:0], c.fences[:0], c.met[:0], c.far[:0], c.owners[:0], c.names[:0]
	clear(c.seen)
}

// rank fills in the ranks.
func (c *canon) rank(all []ranked) {
	sorted := slices.Clone(all)
	slices.SortFunc(sorted, func(a, b ranked) int { return cmp.Compare(a.value, b.value) })
	rank := 0
	for i, r := range sorted {
		if i > 0 && r.value != sorted[i-1].value {
			rank++
		}
		c.b[r.at] = byte(rank)
	}
}

func newCanon() *canon {
	return &canon{seen: map[pointer]int{}, structs: map[reflect.Type][]field{}}
}

func (c *canon) ints(all ...int) {
	for _, n := range all {
		c.b = binary.AppendVarint(c.b, int64(n))
	}
}

func (c *canon) bool(b bool) {
	if b {
		c.b = append(c.b, 1)
	} else {
		c.b = append(c.b, 0)
	}
}

func (c *canon) string(s string) {
	c.ints(len(s))
	c.b = append(c.b, s...)
}

// name is that of something that is only ever compared for equality.
type name struct {
	nonce  ledger.Nonce
	text   string
	node   int
	manner manner
	number uint64
}

func (c *canon) name(of name) {
	n := slices.Index(c.names, of)
	if n < 0 {
		n = len(c.names)
		c.names = append(c.names, of)
	}
	c.ints(n)
}

// fence writes a fence. The next one may be the time, or one more than another:
// so those that are ahead of the time are written by how far.
func (c *canon) fence(f int64) {
	c.met = append(c.met, f)
	ahead := f - c.m.time().UnixMilli()
	c.ints(int(max(ahead, -1)))
	if ahead >= 0 {
		return
	}
	c.fences = append(c.fences, ranked{len(c.b), f})
	c.b = append(c.b, 0)
}

// later writes a time by which others like it are later.
func (c *canon) later(at time.Duration) {
	c.far = append(c.far, ranked{len(c.b), int64(at)})
	c.b = append(c.b, 0)
}

// when writes how far off a time is.
func (c *canon) when(at time.Duration) {
	switch off := at - c.m.Now; {
	case off <= 0:
		c.b = append(c.b, 'P')
	case off > near:
		c.b = append(c.b, 'F')
		c.later(at)
	default:
		c.b = append(c.b, 'N')
		c.ints(int(off / time.Millisecond))
	}
}
