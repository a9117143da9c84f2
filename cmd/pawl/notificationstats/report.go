package notificationstats

import (
	"bytes"
	"context"

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
	err := c.records.Each(ctx, m.add)
	if err != nil {
		return nil, err
	}
	m.endChange()
	r.Copies, r.Repeated = r.Notifications-r.Changes, r.Changes-r.Deliveries[1]
	if r.Intervals, err = newDistribution(ctx, &m.intervals); err != nil {
		return nil, err
	}
	r.Lateness, err = newDistribution(ctx, &m.lateness)
	return r, err
}

// merger reads the sorted records.
type merger struct {
	report              *Report
	intervals, lateness extsort.Sorter

	last      record
	lastBytes []byte // last refers to them
	count     int64  // notifications of the current change
	at        int64  // arrival of the first one, or unknown
	// newer is the earliest position of any newer change of the object. same is the earliest position
	// of the changes with the same order. Each is empty if there is no such change.
	newer, same []byte
}

func (m *merger) add(b []byte) error {
	r := decode(b)
	sameObject := bytes.Equal(r.object, m.last.object)
	sameOrder := sameObject && bytes.Equal(r.order, m.last.order)
	switch {
	case !sameObject || r.order[0] != m.last.order[0]:
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
	if !sameOrder || !bytes.Equal(r.change, m.last.change) {
		m.endChange()
	}
	m.lastBytes = append(m.lastBytes[:0], b...)
	m.last = decode(m.lastBytes)
	return m.addToChange(&r)
}

// earlier returns the earlier of two positions, in the memory of a. It ignores an empty position.
func earlier(a, b []byte) []byte {
	if len(b) > 0 && (len(a) == 0 || bytes.Compare(b, a) < 0) {
		return append(a[:0], b...)
	}
	return a
}

func (m *merger) endChange() {
	if m.count > 0 {
		m.report.Deliveries[m.count]++
		m.report.Changes++
	}
	m.count = 0
}

// addToChange counts a notification of the current change.
func (m *merger) addToChange(r *record) error {
	m.count++
	if m.count == 1 {
		m.at = r.arrival
		if r.lateness == unknown {
			return nil
		}
		return m.lateness.Add(appendMicros(nil, r.lateness))
	}
	if m.at == unknown || r.arrival == unknown {
		return nil
	}
	return m.intervals.Add(appendMicros(nil, r.arrival-m.at))
}
