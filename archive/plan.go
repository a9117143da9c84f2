package archive

import "time"

// Limits say when an object is complete. Each also ends with its minute.
type Limits struct {
	FlushBytes    int           // of records, before encoding
	FlushInterval time.Duration // since its first record was read
}

// maxMalformed bounds the malformed entries of one object, whose numbers are in the
// intent, so that a register stays below its limit.
const maxMalformed = 32

// run is what becomes one object: contiguous entries of a shard, or a gap.
type run struct {
	Range
	records     []Record
	bytes       int
	userRecords int
	malformed   []Number
	arrival     time.Time // the latest of all entries up to the last one
	startedAt   time.Time // when the first entry was read
	gap         bool
	expired     bool         // of a gap: an entry in it is known to have expired
	anchor      Number       // behind a gap: the entry that reading goes on with
	stored      *StoredRange // found to be stored: it is passed
}

// planner cuts a shard's entries into runs.
type planner struct {
	limits   Limits
	end      Number        // the end of the last run; empty: none was begun
	arrival  time.Time     // the latest so far
	covered  []StoredRange // what is stored and not passed yet, in order
	open     run
	complete []run
}

// add takes the next entry. Entries that are stored are passed over.
func (p *planner) add(e Record, now time.Time) {
	p.skipUpTo(e.Number.before(), now)
	if !p.end.less(e.Number) {
		return
	}
	arrival := latest(p.arrival, e.Arrival)
	if minute(arrival) != minute(p.arrival) {
		p.closeRun()
	}
	p.arrival = arrival
	if p.open.Empty() {
		p.open = run{Range: Range{p.end, p.end}, startedAt: now}
	}
	p.open.End, p.end, p.open.arrival = e.Number, e.Number, arrival
	if len(e.UserRecords) > 0 {
		p.open.records = append(p.open.records, e)
		p.open.userRecords += len(e.UserRecords)
	}
	if e.Malformed != nil {
		p.open.malformed = append(p.open.malformed, e.Number)
	}
	p.open.bytes += approxSize(&e)
	if p.open.bytes >= p.limits.FlushBytes {
		p.closeRun()
	}
	if len(p.open.malformed) >= maxMalformed {
		p.flush()
	}
	p.skipAdjacent()
}

// start is where the first run begins.
func (p *planner) start(at Number) {
	if len(p.covered) > 0 {
		at = earlier(at, p.covered[0].Start)
	}
	p.end = at
}

// pass moves over all that is stored up to a number, to which reading has come. A
// run ends where what is stored begins.
func (p *planner) skipUpTo(to Number, now time.Time) {
	if p.end == "" {
		p.start(to)
		p.skipAdjacent()
	}
	for len(p.covered) > 0 && !to.less(p.covered[0].Start) {
		start := p.covered[0].Start
		if p.end.less(start) && !p.open.Empty() {
			p.open.End, p.end = start, start
		}
		p.addGap(start, "", "", now)
		p.skipAdjacent()
	}
}

// lost makes a gap up to a number, in front of the entry that reading goes on with. Of
// the entries in it, missed is known. Empty: none is.
func (p *planner) addLost(to, anchor, missed Number, now time.Time) {
	if p.end == "" {
		p.end = begin
	}
	for len(p.covered) > 0 && p.covered[0].Start.less(to) {
		p.addGap(p.covered[0].Start, "", missed, now)
		p.skipAdjacent()
	}
	p.addGap(to, anchor, missed, now)
	p.skipAdjacent()
}

// gap is a run without entries.
func (p *planner) addGap(to, anchor, missed Number, now time.Time) {
	if !p.end.less(to) {
		return
	}
	p.flush()
	lost := Range{p.end, to}
	p.complete = append(p.complete, run{
		Range: lost, arrival: p.arrival, startedAt: now, gap: true, expired: missed != "" && lost.Contains(missed), anchor: anchor,
	})
	p.end = to
}

// touch steps over what is stored and begins where the last run ends, or before.
func (p *planner) skipAdjacent() {
	for len(p.covered) > 0 && !p.end.less(p.covered[0].Start) {
		next := p.covered[0]
		p.covered = p.covered[1:]
		if !p.end.less(next.End) {
			continue
		}
		p.flush()
		p.end, p.arrival = next.End, latest(p.arrival, next.Minute)
		p.complete = append(p.complete, run{Range: next.Range, stored: &next, arrival: p.arrival})
	}
}

// cut ends the open run. One without a record goes on: an object is never empty.
func (p *planner) closeRun() {
	if p.open.userRecords > 0 {
		p.flush()
	}
}

// flush ends the open run. One whose entries were all malformed is a gap.
func (p *planner) flush() {
	if p.open.Empty() {
		return
	}
	if p.open.userRecords == 0 {
		p.open.gap, p.open.anchor = true, p.open.End
	}
	p.complete = append(p.complete, p.open)
	p.open = run{}
}

// due returns when the open run is complete by its age.
func (p *planner) deadline() (time.Time, bool) {
	return p.open.startedAt.Add(p.limits.FlushInterval), p.open.userRecords > 0
}

// take returns the runs that are complete and become one intent: up to a step, or
// one step.
func (p *planner) nextRuns(now time.Time) []run {
	if at, ok := p.deadline(); ok && !now.Before(at) {
		p.closeRun()
	}
	n := 0
	for n < len(p.complete) && n < maxObjects && p.complete[n].stored == nil {
		n++
	}
	if n == 0 && len(p.complete) > 0 {
		n = 1
	}
	runs := p.complete[:n:n]
	p.complete = p.complete[n:]
	return runs
}

func minute(t time.Time) time.Time { return t.UTC().Truncate(time.Minute) }

// weight is what an entry takes in memory, roughly.
func approxSize(e *Record) int {
	n := len(e.Raw) + 64
	for i := range e.UserRecords {
		n += len(e.UserRecords[i].Data) + len(e.UserRecords[i].PartitionKey) + 128
	}
	return n
}
