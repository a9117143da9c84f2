package archive

import "time"

// Limits say when an object is complete. Each also ends with its minute.
type Limits struct {
	Bytes int           // of records, before encoding
	Age   time.Duration // since its first record was read
}

// maxMalformed bounds the malformed entries of one object, whose numbers are in the
// intent, so that a register stays below its limit.
const maxMalformed = 32

// run is what becomes one object: contiguous entries of a shard, or a gap.
type run struct {
	Range
	entries   []Entry
	bytes     int
	records   int
	malformed []Number
	arrival   time.Time // the latest of all entries up to the last one
	began     time.Time // when the first entry was read
	gap       bool
	expired   bool    // of a gap: an entry in it is known to have expired
	anchor    Number  // behind a gap: the entry that reading goes on with
	step      *Stored // found to be stored: it is passed
}

// planner cuts a shard's entries into runs.
type planner struct {
	limits  Limits
	at      Number    // the end of the last run; empty: none was begun
	arrival time.Time // the latest so far
	covered []Stored  // what is stored and not passed yet, in order
	open    run
	done    []run
}

// add takes the next entry. Entries that are stored are passed over.
func (p *planner) add(e Entry, now time.Time) {
	p.pass(e.Number.before(), now)
	if !p.at.less(e.Number) {
		return
	}
	arrival := latest(p.arrival, e.Arrival)
	if minute(arrival) != minute(p.arrival) {
		p.cut()
	}
	p.arrival = arrival
	if p.open.Empty() {
		p.open = run{Range: Range{p.at, p.at}, began: now}
	}
	p.open.End, p.at, p.open.arrival = e.Number, e.Number, arrival
	if len(e.Records) > 0 {
		p.open.entries = append(p.open.entries, e)
		p.open.records += len(e.Records)
	}
	if e.Malformed != nil {
		p.open.malformed = append(p.open.malformed, e.Number)
	}
	p.open.bytes += weight(&e)
	if p.open.bytes >= p.limits.Bytes {
		p.cut()
	}
	if len(p.open.malformed) >= maxMalformed {
		p.flush()
	}
	p.touch()
}

// start is where the first run begins.
func (p *planner) start(at Number) {
	if len(p.covered) > 0 {
		at = earlier(at, p.covered[0].Start)
	}
	p.at = at
}

// pass moves over all that is stored up to a number, to which reading has come. A
// run ends where what is stored begins.
func (p *planner) pass(to Number, now time.Time) {
	if p.at == "" {
		p.start(to)
		p.touch()
	}
	for len(p.covered) > 0 && !to.less(p.covered[0].Start) {
		start := p.covered[0].Start
		if p.at.less(start) && !p.open.Empty() {
			p.open.End, p.at = start, start
		}
		p.gap(start, "", "", now)
		p.touch()
	}
}

// lost makes a gap up to a number, in front of the entry that reading goes on with. Of
// the entries in it, missed is known. Empty: none is.
func (p *planner) lost(to, anchor, missed Number, now time.Time) {
	if p.at == "" {
		p.at = begin
	}
	for len(p.covered) > 0 && p.covered[0].Start.less(to) {
		p.gap(p.covered[0].Start, "", missed, now)
		p.touch()
	}
	p.gap(to, anchor, missed, now)
	p.touch()
}

// gap is a run without entries.
func (p *planner) gap(to, anchor, missed Number, now time.Time) {
	if !p.at.less(to) {
		return
	}
	p.flush()
	lost := Range{p.at, to}
	p.done = append(p.done, run{
		Range: lost, arrival: p.arrival, began: now, gap: true, expired: missed != "" && lost.Contains(missed), anchor: anchor,
	})
	p.at = to
}

// touch steps over what is stored and begins where the last run ends, or before.
func (p *planner) touch() {
	for len(p.covered) > 0 && !p.at.less(p.covered[0].Start) {
		next := p.covered[0]
		p.covered = p.covered[1:]
		if !p.at.less(next.End) {
			continue
		}
		p.flush()
		p.at, p.arrival = next.End, latest(p.arrival, next.Minute)
		p.done = append(p.done, run{Range: next.Range, step: &next, arrival: p.arrival})
	}
}

// cut ends the open run. One without a record goes on: an object is never empty.
func (p *planner) cut() {
	if p.open.records > 0 {
		p.flush()
	}
}

// flush ends the open run. One whose entries were all malformed is a gap.
func (p *planner) flush() {
	if p.open.Empty() {
		return
	}
	if p.open.records == 0 {
		p.open.gap, p.open.anchor = true, p.open.End
	}
	p.done = append(p.done, p.open)
	p.open = run{}
}

// due returns when the open run is complete by its age.
func (p *planner) due() (time.Time, bool) {
	return p.open.began.Add(p.limits.Age), p.open.records > 0
}

// take returns the runs that are complete and become one intent: up to a step, or
// one step.
func (p *planner) take(now time.Time) []run {
	if at, ok := p.due(); ok && !now.Before(at) {
		p.cut()
	}
	n := 0
	for n < len(p.done) && n < maxObjects && p.done[n].step == nil {
		n++
	}
	if n == 0 && len(p.done) > 0 {
		n = 1
	}
	runs := p.done[:n:n]
	p.done = p.done[n:]
	return runs
}

func minute(t time.Time) time.Time { return t.UTC().Truncate(time.Minute) }

// weight is what an entry takes in memory, roughly.
func weight(e *Entry) int {
	n := len(e.Raw) + 64
	for i := range e.Records {
		n += len(e.Records[i].Data) + len(e.Records[i].PartitionKey) + 128
	}
	return n
}
