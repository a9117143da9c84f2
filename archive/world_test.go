package archive

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"log/slog"
	"slices"
	"strconv"
	"time"

	"github.com/pawlhq/pawl/bucket"
	"github.com/pawlhq/pawl/internal/simkit"
)

// world simulates a stream, a bucket and a ledger for processes with wrong clocks and faulty
// networks. All random choices come from one tape. Threads run one at a time.
type world struct {
	*simkit.World
	pool *pool
	plan plan
	calm bool
	work func(*thread) // replaces the work of the archive, if set

	stream   stream
	objects  map[string]*object
	table    *table // the ledger that processes are configured with
	tables   []*table
	tokens   map[string]int64 // tokens of the shards' leases
	count    int
	threads  []*thread
	deleted  string          // shard of an object that was deleted by hand
	losses   int             // times that registers were lost or went back
	mustFind map[string]bool // shards that a process must find but cannot list
	retired  map[string]bool // finished shards without registers
	crashes  int
	first    map[string]time.Duration // time of the first object, by object key or shard ID
	claimed  *object                  // claim was parsed from it
	claim    Claim
}

type pool = simkit.Threads[*simkit.Thread]

func newPool() *pool { return &pool{New: func() *simkit.Thread { return &simkit.Thread{} }} }

// plan is the kind of a world. Chances are per mille.
type plan struct {
	retention time.Duration
	procs     int
	puts      int
	faults    int
	freezes   int
	crashes   int
	skewed    bool
	shuffled  bool
	aggregates,
	malformed bool
	outage   bool // longer than the retention
	reshards int
	loses    bool
	restores bool // registers go back in time
	misses   bool // the register of one shard is lost
	unseen   bool // shards live only during the outage
	second   bool // some processes use another ledger
	steals   int  // chance of acquiring a held lease
	fromTime bool // the archive begins at a time
	mixed    bool // processes have different configurations
}

func drawPlan(t *simkit.Tape) plan {
	p := plan{
		procs: 1 + t.Choose(3), puts: 4 + t.Choose(24),
		faults: simkit.Pick(t, 0, 60, 150, 300), freezes: simkit.Pick(t, 0, 15, 40), crashes: simkit.Pick(t, 0, 15, 40),
		skewed: t.Chance(400), shuffled: t.Chance(500), aggregates: t.Chance(500), malformed: t.Chance(200),
		outage: t.Chance(300), steals: simkit.Pick(t, 0, 0, 30, 300), loses: t.Chance(250), fromTime: t.Chance(150), mixed: t.Chance(500),
	}
	p.retention = simkit.Pick(t, 24*time.Hour, 2*time.Hour)
	p.second, p.restores, p.misses = t.Chance(200), t.Chance(200), t.Chance(150)
	p.unseen = p.outage && t.Chance(500)
	if t.Chance(400) {
		p.reshards = 1 + t.Choose(3)
	}
	return p
}

var epoch = time.Date(2026, time.March, 1, 0, 0, 0, 0, time.UTC)

func (w *world) clock() time.Time { return epoch.Add(w.Now) }

const (
	maxSteps   = 150_000
	maxCrashes = 15
)

func (w *world) run(done func() bool) {
	for !done() && w.Step() {
		if w.Steps > maxSteps {
			w.Violatef("A5", "it goes on for ever")
			return
		}
	}
}

func (w *world) name() string {
	w.count++
	return strconv.Itoa(w.count)
}

type proc struct {
	*world
	table  *table
	id     int
	dead   bool
	frozen time.Duration
	offset time.Duration
	date   time.Duration // the bucket's clock in its latest response, in whole seconds
	dated  time.Duration // 0 if there was no response
	format string
	knows  string // one letter each
	codec  int
	limits Limits
}

type thread struct {
	*proc
	code    *simkit.Thread
	stopped bool // its context has ended
	losses  int  // of the world, when the thread last reached the ledger
	idle    int  // consecutive reads without records
	turns   int  // shards that it has stored in the calm
}

var errDead = errors.New("the process is dead")

// The thread runs until it first waits.
func (p *proc) spawn(job func(*thread)) {
	t := &thread{proc: p, code: p.pool.Get()}
	p.threads = append(p.threads, t)
	p.pool.Start(t.code, func() { job(t) })
}

func (t *thread) wait(d time.Duration) bool {
	if t.dead {
		return false
	}
	t.After(d, t.resume)
	t.code.Yield()
	return !t.dead
}

func (t *thread) resume() {
	if t.frozen > t.Now {
		t.After(t.frozen-t.Now, t.resume)
		return
	}
	t.pool.Resume(t.code)
}

type threadContext struct {
	context.Context
	*thread
}

func (s threadContext) Err() error {
	if s.stopped || s.dead {
		return context.Canceled
	}
	return nil
}

var errSilent = errors.New("no answer")

// call adds faults. The request may take effect later, or twice.
func (t *thread) call(do func(now time.Duration) error, writes bool) error {
	if t.dead {
		return errDead
	}
	w := t.world
	moment := func() time.Duration { return w.Tape.UpTo(200 * time.Millisecond) }
	answered := func(err error) error {
		if !t.wait(moment()) {
			return errDead
		}
		return err
	}
	if w.calm {
		return answered(do(w.Now))
	}
	if w.crashes < maxCrashes && w.Tape.Chance(w.plan.crashes) {
		if w.Tape.Chance(500) && writes {
			w.After(w.Tape.UpTo(20*time.Minute), func() { _ = do(w.Now) })
		}
		t.crash()
		return errDead
	}
	if w.Tape.Chance(w.plan.freezes) {
		t.frozen = w.Now + simkit.Pick(w.Tape, time.Minute, 10*time.Minute, time.Hour, 30*time.Hour)
		w.Tracef("process %d stands still for %v", t.id, t.frozen-w.Now)
		if w.Tape.Chance(500) {
			err := do(w.Now)
			return answered(err)
		}
		if !t.wait(moment()) {
			return errDead
		}
	}
	switch w.Tape.Fault(w.plan.faults, simkit.Unsent, simkit.Lost, simkit.Late, simkit.Repeated, simkit.Twice) {
	case simkit.Unsent:
		return answered(errSilent)
	case simkit.Lost:
		_ = do(w.Now)
		return answered(errSilent)
	case simkit.Late:
		if writes {
			w.After(w.Tape.UpTo(20*time.Minute), func() { _ = do(w.Now) })
		}
		return answered(errSilent)
	case simkit.Repeated:
		if writes {
			w.After(w.Tape.UpTo(20*time.Minute), func() { _ = do(w.Now) })
		}
		return answered(do(w.Now))
	case simkit.Twice:
		err := do(w.Now)
		if writes {
			err = do(w.Now)
		}
		return answered(err)
	}
	if !t.wait(moment()) {
		return errDead
	}
	return answered(do(w.Now))
}

func (t *thread) crash() {
	t.dead = true
	w := t.world
	w.crashes++
	w.Tracef("process %d dies", t.id)
	w.After(w.Tape.UpTo(5*time.Minute), func() { w.worker(w.table) })
}

func (w *world) worker(over *table) {
	p := &proc{world: w, table: over, id: len(w.threads), format: "a", knows: "abc", limits: Limits{FlushBytes: 700, FlushInterval: 2 * time.Minute}}
	if w.plan.skewed {
		p.offset = w.Tape.UpTo(20*time.Minute) - 10*time.Minute
	}
	if w.plan.mixed {
		p.format, p.codec = simkit.Pick(w.Tape, "a", "b", "c"), w.Tape.Choose(3)
		p.limits = simkit.Pick(w.Tape, p.limits, Limits{FlushBytes: 200, FlushInterval: time.Minute}, Limits{FlushBytes: 1 << 20, FlushInterval: 10 * time.Minute})
		if !w.calm && w.Tape.Chance(150) {
			p.knows = p.format
		}
	}
	if w.work != nil {
		p.spawn(w.work)
		return
	}
	p.spawn((*thread).storeAll)
}

func (t *thread) archive() *Archive {
	a, err := New(Config{
		Name: "x", Bucket: "b", Prefix: "p/", Format: t.format, Limits: t.limits, Owner: strconv.Itoa(t.id),
		Stream: streamOf{t}, Store: storeOf{t}, Registers: registersOf{t}, Codec: codec{t.proc},
		Logger: slog.New(slog.DiscardHandler), Now: func() time.Time { return t.clock().Add(t.offset) }, Nonce: t.name,
		Sleep: func(_ context.Context, d time.Duration) error {
			if !t.wait(d) || t.stopped {
				return context.Canceled
			}
			return nil
		},
	})
	if err != nil {
		panic(err)
	}
	a.oneByOne = true
	if t.plan.fromTime {
		a.Origin = epoch.Add(30 * time.Minute)
	}
	return a
}

func (t *thread) storeAll() {
	for !t.dead && (!t.calm || t.table == t.world.table) {
		t.stopped = false
		err := t.storeOne()
		t.Tracef("process %d: %v", t.id, err)
		pause := time.Second + t.Tape.UpTo(time.Minute)
		switch {
		case errors.Is(err, errNothing) && t.Now > t.plan.faultsEnd()+3*time.Hour:
			pause = 10 * time.Hour
		case errors.Is(err, errNothing):
			pause = t.plan.faultsEnd() / 36
			if t.calm {
				pause = 45 * time.Minute
			}
		case errors.Is(err, ErrLostRegisters) || errors.Is(err, ErrClaimed):
			pause += 3 * time.Minute
		case errors.Is(err, ErrBroken):
			pause = time.Hour
		}
		t.wait(pause)
	}
}

var errNothing = errors.New("there is no shard to be stored")

func (t *thread) storeOne() error {
	ctx := threadContext{context.Background(), t}
	a := t.archive()
	c, err := a.Claim(ctx)
	if err != nil {
		return err
	}
	all, err := a.Shards(ctx, c)
	if err != nil {
		return err
	}
	open := slices.DeleteFunc(slices.Clone(all), func(one Shard) bool {
		p, ok := t.progress(one.ID)
		holder := t.table.leases[one.ID]
		return ok && p.State == Finished || holder != nil && !holder.dead && holder.frozen <= t.Now && !t.Tape.Chance(t.plan.steals)
	})
	if len(open) == 0 {
		return errNothing
	}
	id := open[t.Tape.Choose(len(open))].ID
	if t.calm { // each shard in turn
		id = open[t.turns%len(open)].ID
		t.turns++
	}
	t.tokens[id]++
	leases := t.table.leases
	leases[id] = t
	defer func() {
		if leases[id] == t {
			delete(leases, id)
		}
	}()
	t.Tracef("process %d takes %s under %d", t.id, id, t.tokens[id])
	until := t.Now + simkit.Pick(t.Tape, 2*time.Minute, 10*time.Minute, time.Hour, 20*time.Second)
	switch {
	case t.calm && t.Now > t.plan.faultsEnd()+2*time.Hour:
		until += 20 * time.Hour
	case t.plan.outage:
		until += 2 * time.Hour
	}
	t.After(until-t.Now, func() { t.stopped = true })
	return a.RunShard(ctx, c, all, id, t.tokens[id])
}

// codec writes its version and then one line per user record.
type codec struct{ *proc }

func (c codec) Knows(format string) bool { return slices.Contains([]byte(c.knows), format[0]) }

func (c codec) Encode(format, _ string, records []Record) ([]byte, error) {
	b := fmt.Appendf(nil, "%s%d\n", format, c.codec)
	for i := range records {
		for _, r := range records[i].UserRecords {
			b = append(append(b, r.Number...), ' ')
			b = append(strconv.AppendInt(b, int64(r.Sub), 10), ' ')
			b = append(strconv.AppendInt(b, r.Arrival.UnixMilli(), 10), ' ')
			b = append(append(b, r.Data...), '\n')
		}
	}
	return b, nil
}

func (c codec) Decode(format, _ string, body []byte) (records []Record, err error) {
	if len(body) == 0 || body[0] != format[0] {
		return nil, errors.New("another format")
	}
	return decodeLines(body), nil
}

func decodeLines(body []byte) (records []Record) {
	for i, line := range slices.Collect(splitLines(body)) {
		if i == 0 {
			continue
		}
		var r UserRecord
		var ms int64
		if _, err := fmt.Sscan(string(line), &r.Number, &r.Sub, &ms, &r.Data); err != nil {
			panic(err)
		}
		r.Arrival = time.UnixMilli(ms)
		if last := len(records) - 1; last < 0 || records[last].Number != r.Number {
			records = append(records, Record{Number: r.Number, Arrival: r.Arrival})
		}
		e := &records[len(records)-1]
		e.UserRecords = append(e.UserRecords, r)
	}
	return records
}

func splitLines(body []byte) iter.Seq[[]byte] {
	return func(yield func([]byte) bool) {
		for len(body) > 0 {
			i := slices.Index(body, '\n')
			if !yield(body[:i]) {
				return
			}
			body = body[i+1:]
		}
	}
}

var _ bucket.Store = storeOf{}
