package archive

import "time"

// Limits determine when an object is complete. It is also complete at the end of its minute.
type Limits struct {
	FlushBytes    int           // size of the records before encoding
	FlushInterval time.Duration // time since its first record was read
}

// maxMalformed bounds the malformed records of one object, because the register lists them.
const maxMalformed = 32

// run is a contiguous range of a shard that becomes one object: records, or a gap.
type run struct {
	Range
	records     []Record
	bytes       int
	userRecords int
	malformed   []Number
	arrival     time.Time // latest up to End
	startedAt   time.Time
	gap         bool
	expired     bool         // for a gap: a record of it is known to have expired
	anchor      Number       // for a gap: the record at which reading resumes
	stored      *StoredRange // an already stored range, which the worker skips
}

type planner struct {
	limits   Limits
	end      Number // empty before the first run
	arrival  time.Time
	covered  []StoredRange
	open     run
	complete []run
}

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

func (p *planner) start(at Number) {
	if len(p.covered) > 0 {
		at = earlier(at, p.covered[0].Start)
	}
	p.end = at
}

// skipUpTo skips the stored ranges up to a number. The open run ends where a stored range starts.
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

// addLost adds a gap up to the number to. Reading resumes at anchor. missed is a record that is
// known to be lost, or empty.
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

// closeRun continues a run without user records, because an object is never empty.
func (p *planner) closeRun() {
	if p.open.userRecords > 0 {
		p.flush()
	}
}

// flush ends the open run. A run without user records becomes a gap.
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

func (p *planner) deadline() (time.Time, bool) {
	return p.open.startedAt.Add(p.limits.FlushInterval), p.open.userRecords > 0
}

// nextRuns returns the runs of one intent, or one stored range.
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

func approxSize(e *Record) int {
	n := len(e.Raw) + 64
	for i := range e.UserRecords {
		n += len(e.UserRecords[i].Data) + len(e.UserRecords[i].PartitionKey) + 128
	}
	return n
}
