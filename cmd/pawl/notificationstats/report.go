package notificationstats

import (
	"bytes"
	"context"
	"errors"

	"github.com/pawlhq/pawl/internal/extsort"
)

// Report has the figures of all notifications.
type Report struct {
	Notifications     int64 `json:"notifications"`
	WithoutReceivedAt int64 `json:"without_received_at"` // notifications without an arrival time
	Objects           int64 `json:"objects"`             // distinct buckets and keys
	Changes           int64 `json:"changes"`             // distinct changes of objects
	Repeated          int64 `json:"repeated"`            // changes with more than one notification
	Copies            int64 `json:"copies"`              // notifications after the first one of their change
	// Deliveries are the numbers of changes by number of notifications.
	Deliveries map[int64]int64 `json:"changes_by_notifications"`
	// OutOfOrder is the number of notifications that arrived after one of a newer change of their
	// object.
	OutOfOrder int64 `json:"out_of_order"`
	// Intervals are the times between the first notification of a change and each copy. Nil if
	// no two arrival times are known.
	Intervals *Distribution `json:"copy_intervals,omitempty"`
	// Lateness is the time between a change and its first notification. Nil if no arrival time is known.
	Lateness *Distribution `json:"lateness,omitempty"`
}

// Report computes the figures. It may be called once, after all calls of Add.
func (c *Collector) Report(ctx context.Context) (*Report, error) {
	r := &Report{Notifications: c.records.Len(), WithoutReceivedAt: c.unknown, Deliveries: map[int64]int64{}}
	m := &merger{report: r}
	defer m.intervals.Close()
	defer m.lateness.Close()
	for b, err := range c.records.Sorted() {
		if err == nil {
			err = ctx.Err()
		}
		if err == nil {
			err = m.add(b)
		}
		if err != nil {
			return nil, err
		}
	}
	m.endChange()
	var err, lateErr error
	r.Intervals, err = newDistribution(ctx, &m.intervals)
	r.Lateness, lateErr = newDistribution(ctx, &m.lateness)
	return r, errors.Join(err, lateErr)
}

// merger reads the sorted records.
type merger struct {
	report              *Report
	intervals, lateness extsort.Sorter

	last  []byte // the last record
	count int64  // notifications of the current change
	known bool   // whether the arrival of the first one is known
	at    int64  // that arrival
	// newer is the first position of all newer changes of the object, and same that of the changes
	// with the same order. Both are empty if there are none.
	newer, same []byte
	buf         []byte
}

func (m *merger) add(b []byte) error {
	r := decode(b)
	var last record // zero before the first record
	if m.last != nil {
		last = decode(m.last)
	}
	sameObject := bytes.Equal(r.object, last.object)
	sameOrder := sameObject && bytes.Equal(r.order, last.order)
	switch {
	case !sameObject || r.order[0] != last.order[0]:
		m.newer, m.same = m.newer[:0], m.same[:0]
	case !sameOrder:
		m.newer = earlier(m.newer, m.same)
		m.same = m.same[:0]
	}
	m.same = earlier(m.same, r.position)
	if len(m.newer) > 0 && bytes.Compare(r.position, m.newer) > 0 {
		m.report.OutOfOrder++
	}
	if !sameObject {
		m.report.Objects++
	}
	if !sameOrder || !bytes.Equal(r.change, last.change) {
		m.endChange()
	}
	m.last = append(m.last[:0], b...)
	return m.addToChange(&r)
}

// earlier returns the earlier of two positions in the memory of a. An empty position is none.
func earlier(a, b []byte) []byte {
	if len(b) > 0 && (len(a) == 0 || bytes.Compare(b, a) < 0) {
		return append(a[:0], b...)
	}
	return a
}

func (m *merger) endChange() {
	if m.count == 0 {
		return
	}
	m.report.Deliveries[m.count]++
	m.report.Changes++
	m.report.Copies += m.count - 1
	if m.count > 1 {
		m.report.Repeated++
	}
	m.count = 0
}

// addToChange counts a notification of the current change.
func (m *merger) addToChange(r *record) error {
	m.count++
	at, known := micros(r.position), r.flags&hasArrival > 0
	switch {
	case m.count > 1 && m.known && known:
		m.buf = appendMicros(m.buf[:0], at-m.at)
		return m.intervals.Add(m.buf)
	case m.count > 1:
		return nil
	}
	m.at, m.known = at, known
	if r.flags&hasLateness == 0 {
		return nil
	}
	m.buf = appendMicros(m.buf[:0], r.lateness)
	return m.lateness.Add(m.buf)
}
