// Package notificationstats measures captured notifications: copies, the time between a
// notification and its copy, lateness, and order. The figures are exact. The memory does not
// depend on the number of notifications, because sorted runs go to temporary files.
package notificationstats

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"math"
	"time"

	"github.com/pawlhq/pawl/event"
	"github.com/pawlhq/pawl/internal/extsort"
)

// Collector collects notifications. Its zero value is ready to use.
//
// Each notification becomes a record of about 70 bytes. The order of the records brings the
// copies of a change together, and the changes of an object from the newest to the oldest:
//
//	hash of the object, order of the change, hash of the change, position, lateness
//
// The position is the time of arrival, the number of the notification in the input, and whether
// the time is its own. A hash has 128 bits of SHA-256, so two objects never share one in practice.
type Collector struct {
	records  extsort.Sorter
	last     time.Time // arrival of the last notification with a known arrival
	unknown  int64     // notifications without an arrival time
	buf, key []byte
}

const (
	hashBytes     = 16
	positionBytes = 17
	tailBytes     = hashBytes + positionBytes + 8 // the bytes after the order

	unknown = math.MinInt64 // an unknown time or duration
)

// Kinds of order. Changes of different kinds are not comparable.
const (
	orderSequencer = iota
	orderTime
	orderNone
)

// Add adds a notification. received is the time of its arrival, or zero if that is unknown. In the
// order of arrival, the notification follows the one that was added before it.
func (c *Collector) Add(e *event.Event, received time.Time) error {
	lateness, timed := int64(unknown), byte(0)
	if received.IsZero() {
		c.unknown++
	} else {
		c.last, timed = received, 1
		if !e.Time.IsZero() {
			lateness = received.UnixMicro() - e.Time.UnixMicro()
		}
	}
	o := &e.Object
	b := c.appendHash(c.buf[:0], o.Bucket, "/", o.Key) // a bucket has no slash
	b = appendOrder(b, e)
	if seq := e.Sequencer.String(); e.Dialect.TrustsSequencer() {
		b = c.appendHash(b, e.Kind.String(), " ", seq, " ", o.VersionID)
	} else {
		var when [16]byte
		binary.BigEndian.PutUint64(when[:], uint64(e.Time.UnixMicro()))
		binary.BigEndian.PutUint64(when[8:], uint64(e.Size))
		b = c.appendHash(b, e.Kind.String(), " ", seq, " ", string(when[:]), e.ETag, "\x00", o.VersionID)
	}
	b = appendMicros(b, c.last.UnixMicro())
	b = binary.BigEndian.AppendUint64(b, uint64(c.records.Len()))
	c.buf = appendMicros(append(b, timed), lateness)
	return c.records.Add(c.buf)
}

func (c *Collector) appendHash(b []byte, parts ...string) []byte {
	c.key = c.key[:0]
	for _, s := range parts {
		c.key = append(c.key, s...)
	}
	sum := sha256.Sum256(c.key)
	return append(b, sum[:hashBytes]...)
}

// appendOrder appends an encoding in which newer changes are before older ones. A trusted
// sequencer decides, otherwise the time of the change.
func appendOrder(b []byte, e *event.Event) []byte {
	switch {
	case e.Dialect.TrustsSequencer():
		return appendSequencer(append(b, orderSequencer), e.Sequencer)
	case !e.Time.IsZero():
		return appendMicros(append(b, orderTime), -e.Time.UnixMicro())
	}
	return append(b, orderNone)
}

// appendSequencer appends the complement of the sequencer's bytes. FF 00 stands for the byte FF,
// and FF FF for the end, because a sequencer ends with infinitely many zeros.
func appendSequencer(b []byte, s event.Sequencer) []byte {
	digits := s.String()
	if len(digits)%2 > 0 {
		digits += "0"
	}
	var raw [event.MaxSequencer / 2]byte
	n, _ := hex.Decode(raw[:], []byte(digits)) // a sequencer is hexadecimal
	for _, x := range raw[:n] {
		if b = append(b, ^x); x == 0 {
			b = append(b, 0)
		}
	}
	return append(b, 0xff, 0xff)
}

// appendMicros appends a number so that negative ones sort before positive ones.
func appendMicros(b []byte, n int64) []byte {
	return binary.BigEndian.AppendUint64(b, uint64(n)^1<<63)
}

func micros(b []byte) int64 { return int64(binary.BigEndian.Uint64(b) ^ 1<<63) }

// Close removes the temporary files.
func (c *Collector) Close() { c.records.Close() }

// record is a decoded record.
type record struct {
	object, order, change, position []byte
	arrival, lateness               int64 // microseconds, or unknown
}

func decode(b []byte) record {
	tail := b[len(b)-tailBytes:]
	r := record{
		object: b[:hashBytes], order: b[hashBytes : len(b)-tailBytes], change: tail[:hashBytes], position: tail[hashBytes : hashBytes+positionBytes],
		arrival: unknown, lateness: micros(tail[hashBytes+positionBytes:]),
	}
	if r.position[positionBytes-1] == 1 {
		r.arrival = micros(r.position)
	}
	return r
}
