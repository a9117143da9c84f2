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

type digest [2]uint64

var digestSeeds = [2]maphash.Seed{maphash.MakeSeed(), maphash.MakeSeed()}

// stateKey encodes everything that can influence the future of a small world. Names are made
// canonical:
//
//   - nonces, batches and deliveries, which are only compared for equality, by first appearance;
//   - fences by their rank, or by their distance ahead of the time;
//   - times by their distance. All past times are equal, and so are all far times, but
//     verifications are ordered.
//
// Private fields of the shipped code are encoded by reflection, unless fieldEncodings omits them.
type stateKey struct {
	m           *smallWorld
	node        int // whose batches and deliveries are encoded
	b           []byte
	names       []name
	seen        map[pointer]int
	nodes       []*node
	nodeNames   []string
	fences      []rankSlot
	allFences   []int64
	verifyTimes []rankSlot // of verifications and events that wait for them
	fieldCache  map[reflect.Type][]field
}

// rankSlot is the position of a value's rank.
type rankSlot struct {
	at    int
	value int64
}

type field struct {
	index    int
	encoding encoding
}

type encoding uint8

const (
	asIs encoding = iota
	omitted
	fixedTime // determined by the user's changes alone
	isSet     // only the presence of a time or text matters
	leaseAge  // past time, of a lease
	verifyTime
	fence
	batch
	delivery
	owner
)

// Times are encoded by their distance unless listed here.
var fieldEncodings = map[string]encoding{
	"engine.Engine.cfg":        omitted, // equal in all worlds
	"engine.Engine.now":        omitted, // overwritten by every step
	"engine.Engine.out":        omitted, // emptied by every step
	"engine.Engine.lastBatch":  omitted, // a name
	"engine.Engine.Stats":      omitted,
	"engine.Engine.tracker":    omitted, // only for parked rows, and there are none
	"engine.entry.tracked":     omitted,
	"engine.entry.since":       omitted, // reported only
	"engine.entry.began":       omitted,
	"engine.delivery.came":     omitted,
	"engine.Engine.batches":    batch,
	"engine.Engine.deliveries": delivery,
	"engine.Answer.ID":         delivery,
	"engine.Answer.Raised":     omitted, // counted only
	"engine.Answer.Duplicate":  omitted,
	"engine.Answer.Stale":      omitted,
	"engine.Deliver.ID":        delivery,
	"engine.Swap.Batch":        batch,
	"engine.Swapped.Batch":     batch,
	"engine.Sweep.Before":      omitted, // already sent
	"engine.Finished.Fence":    fence,
	"engine.flight.at":         leaseAge,

	"ledger.Failure.Message":   isSet,
	"ledger.Row.History":       omitted,
	"ledger.Row.LastError":     isSet,
	"ledger.Row.EventTime":     fixedTime,
	"ledger.Row.CreatedTime":   fixedTime,
	"ledger.Row.CreatedAt":     isSet,
	"ledger.Row.UpdatedAt":     isSet, // never in the future
	"ledger.Row.VerifyAt":      verifyTime,
	"ledger.Lease.Owner":       owner,
	"ledger.Lease.Fence":       fence,
	"ledger.Claim.Fence":       fence,
	"ledger.Claim.CreatedTime": fixedTime,
	"ledger.Claim.verifyAt":    verifyTime,
	"ledger.Identity.ModTime":  fixedTime,

	"simplelru.LRU.evictList":     omitted, // there is only one object
	"simplelru.LRU.onEvict":       omitted,
	"internal.Entry.next":         omitted,
	"internal.Entry.prev":         omitted,
	"internal.Entry.list":         omitted,
	"internal.Entry.ExpiresAt":    omitted,
	"internal.Entry.ExpireBucket": omitted,
}

func (c *stateKey) digest(m *smallWorld) digest {
	c.write(m)
	return digest{maphash.Bytes(digestSeeds[0], c.b), maphash.Bytes(digestSeeds[1], c.b)}
}

// Processes are interchangeable, so their states determine their order. If they do not, write uses
// the smaller of the two encodings.
func (c *stateKey) write(m *smallWorld) {
	c.m = m
	c.nodes = append(c.nodes[:0], m.nodes...)
	order := c.compareNodes()
	if order > 0 {
		slices.Reverse(c.nodes)
	}
	c.writeInOrder()
	if order != 0 || len(c.nodes) < 2 {
		return
	}
	one := slices.Clone(c.b)
	slices.Reverse(c.nodes)
	c.writeInOrder()
	if bytes.Compare(one, c.b) < 0 {
		c.b = append(c.b[:0], one...)
	}
}

func (c *stateKey) writeInOrder() {
	m := c.m
	c.clear()
	for _, n := range c.nodes {
		c.nodeNames = append(c.nodeNames, n.name)
	}
	c.ints(m.changed, m.crashes, m.stalls)
	for _, msg := range m.messages {
		c.bool(msg.acked)
		c.bool(msg.sent)
	}
	c.walk(reflect.ValueOf(m.store.(*refStore).rows))
	c.objects()
	for i, n := range c.nodes {
		c.node = i
		c.process(n)
	}
	c.node = -1
	c.jobs(nil)
	c.entries()
	alive := len(c.allFences)
	for _, t := range m.oracles {
		if t.object == m.objects[0] {
			c.writeOracle(t, c.allFences[:alive])
		}
	}
	c.rank(c.fences)
	c.rank(c.verifyTimes)
}

func (c *stateKey) compareNodes() int {
	if len(c.nodes) < 2 {
		return 0
	}
	a, b := c.nodes[0], c.nodes[1]
	if order := cmp.Compare(c.activityHash(a), c.activityHash(b)); order != 0 {
		return order
	}
	return cmp.Compare(c.isolatedKey(a), c.isolatedKey(b))
}

func (c *stateKey) activityHash(n *node) (sum uint64) {
	mix := func(v uint64) { sum = (sum ^ v) * 0x9E3779B97F4A7C15 }
	for _, t := range c.m.oracles {
		if t.row.Lease.Owner == n.name {
			mix(1)
		}
	}
	mix(uint64(len(n.tasks)))
	mix(uint64(len(n.deliveries)))
	mix(uint64(n.engine.Pending()))
	mix(uint64(min(max(n.tickAt-c.m.Now, 0), maxNear+1))) // all far times are equal
	for _, t := range c.threads(n) {
		mix(uint64(len(t.observed)))
		mix(uint64(len(jobOf(t).what)))
	}
	return sum
}

func (c *stateKey) isolatedKey(n *node) string {
	c.clear()
	c.nodeNames = append(c.nodeNames, n.name)
	c.process(n)
	c.rank(c.fences)
	c.rank(c.verifyTimes)
	return string(c.b)
}

func (c *stateKey) clear() {
	c.b, c.fences, c.allFences, c.verifyTimes, c.nodeNames, c.names = c.b[:0], c.fences[:0], c.allFences[:0], c.verifyTimes[:0], c.nodeNames[:0], c.names[:0]
	clear(c.seen)
}

func (c *stateKey) rank(all []rankSlot) {
	sorted := slices.Clone(all)
	slices.SortFunc(sorted, func(a, b rankSlot) int { return cmp.Compare(a.value, b.value) })
	rank := 0
	for i, r := range sorted {
		if i > 0 && r.value != sorted[i-1].value {
			rank++
		}
		c.b[r.at] = byte(rank)
	}
}

func newStateKey() *stateKey {
	return &stateKey{seen: map[pointer]int{}, fieldCache: map[reflect.Type][]field{}}
}

func (c *stateKey) ints(all ...int) {
	for _, n := range all {
		c.b = binary.AppendVarint(c.b, int64(n))
	}
}

func (c *stateKey) bool(b bool) {
	if b {
		c.b = append(c.b, 1)
	} else {
		c.b = append(c.b, 0)
	}
}

func (c *stateKey) string(s string) {
	c.ints(len(s))
	c.b = append(c.b, s...)
}

// name is a value that is only compared for equality.
type name struct {
	nonce    ledger.Nonce
	text     string
	node     int
	encoding encoding
	number   uint64
}

func (c *stateKey) name(of name) {
	n := slices.Index(c.names, of)
	if n < 0 {
		n = len(c.names)
		c.names = append(c.names, of)
	}
	c.ints(n)
}

// The next fence may be the time, or one more than another fence. Therefore a fence ahead of the
// time is encoded by its distance.
func (c *stateKey) fence(f int64) {
	c.allFences = append(c.allFences, f)
	ahead := f - c.m.time().UnixMilli()
	c.ints(int(max(ahead, -1)))
	if ahead >= 0 {
		return
	}
	c.fences = append(c.fences, rankSlot{len(c.b), f})
	c.b = append(c.b, 0)
}

func (c *stateKey) verifyRank(at time.Duration) {
	c.verifyTimes = append(c.verifyTimes, rankSlot{len(c.b), int64(at)})
	c.b = append(c.b, 0)
}

func (c *stateKey) distance(at time.Duration) {
	switch off := at - c.m.Now; {
	case off <= 0:
		c.b = append(c.b, 'P')
	case off > maxNear:
		c.b = append(c.b, 'F')
		c.verifyRank(at)
	default:
		c.b = append(c.b, 'N')
		c.ints(int(off / time.Millisecond))
	}
}
