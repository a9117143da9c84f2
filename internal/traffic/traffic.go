// Package traffic generates, for tests and benchmarks, the notifications that a bucket in AWS
// sends within several days. A seed determines them. The package yields them in order of
// arrival. Its memory use depends only on the number of notifications in transit.
//
// [Published] has figures that were measured in a production account for 104 hours: "AWS S3
// Event Notifications have 'probably once' delivery" (Eric Urban, 2019). They are the number of
// notifications and keys, the number of keys with two or three notifications, and the intervals
// between these. All copies of a notification have the same x-amz-id-2. The article has no
// figures for lost notifications and delays: this package adds both.
package traffic

import (
	"container/heap"
	"crypto/md5"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"iter"
	"math"
	"math/rand/v2"
	"net/url"
	"time"
)

// Shape describes the amount of traffic and the faults of the notifications.
type Shape struct {
	Span        time.Duration // time within which all notifications arrive
	Keys        int           // number of keys with notifications
	Twice       int           // number of keys with two notifications
	Thrice      int           // number of keys with three notifications
	MinInterval time.Duration // shortest interval between a notification and its repetition
	MaxInterval time.Duration // longest such interval, and longest delay of a notification
	Lost        int           // number of objects without a notification, in addition to Keys
}

// Published is the shape of the published account. One notification in a thousand is lost.
var Published = Shape{
	Span: 104 * time.Hour, Keys: 507_549, Twice: 151, Thrice: 3, MinInterval: 62 * time.Millisecond, MaxInterval: 22_162 * time.Second, Lost: 507,
}

// Divided returns the shape with 1/n of the keys in the same time.
func (s Shape) Divided(n int) Shape {
	s.Keys /= n
	s.Twice, s.Thrice, s.Lost = max(1, s.Twice/n), max(1, s.Thrice/n), max(1, s.Lost/n)
	return s
}

// Notifications returns the number of notifications that arrive.
func (s Shape) Notifications() int { return s.Keys + s.Twice + 2*s.Thrice }

// Objects returns the number of objects in the bucket.
func (s Shape) Objects() int { return s.Keys + s.Lost }

// Traffic is the traffic of a bucket. Each call of a method that yields a sequence starts it
// from the beginning.
type Traffic struct {
	Shape
	Bucket string
	Start  time.Time
	Seed   uint64

	copies map[int]int // number of copies by object, if it is not 1
}

// New returns the traffic of a seed.
func New(s Shape, bucket string, start time.Time, seed uint64) *Traffic {
	t := &Traffic{Shape: s, Bucket: bucket, Start: start, Seed: seed, copies: make(map[int]int)}
	rng := t.random(math.MaxUint64)
	for _, fate := range []struct{ copies, objects int }{{0, s.Lost}, {2, s.Twice}, {3, s.Thrice}} {
		for n := 0; n < fate.objects; {
			if i := rng.IntN(s.Objects()); t.copyCount(i) == 1 {
				t.copies[i] = fate.copies
				n++
			}
		}
	}
	return t
}

// random returns the random generator of an object.
func (t *Traffic) random(i uint64) *rand.Rand { return rand.New(rand.NewPCG(t.Seed, i)) }

func (t *Traffic) copyCount(i int) int {
	if n, ok := t.copies[i]; ok {
		return n
	}
	return 1
}

// Object is an object that was created once and never changed.
type Object struct {
	Number  int // number in order of creation, from 0
	Created time.Time
	Copies  int // number of copies of its notification; 0 if the notification is lost
}

// Objects yields all objects of the bucket, in order of creation.
func (t *Traffic) Objects() iter.Seq[Object] {
	return func(yield func(Object) bool) {
		for i := range t.Shape.Objects() {
			if !yield(t.object(i)) {
				return
			}
		}
	}
}

func (t *Traffic) object(i int) Object {
	step := (t.Span - time.Minute) / time.Duration(t.Shape.Objects())
	at := t.Start.Add(time.Duration(i)*step + time.Duration(t.random(uint64(i)).Int64N(int64(step)))).UTC()
	return Object{Number: i, Created: at, Copies: t.copyCount(i)}
}

// Key returns the key of the object. Within an hour, the order of keys differs from the order
// of creation.
func (o Object) Key() string {
	return fmt.Sprintf("data/%s/%08x part %d.json", o.Created.Format("2006/01/02/15"), uint32(o.Number)*2654435761, o.Number)
}

// Content returns the content of the object. It differs between objects.
func (o Object) Content() string { return fmt.Sprintf(`{"object":%d}`, o.Number) }

// ETag returns the ETag of the content.
func (o Object) ETag() string {
	sum := md5.Sum([]byte(o.Content()))
	return hex.EncodeToString(sum[:])
}

// Notification is a notification that arrives.
type Notification struct {
	Object
	Arrives time.Time
	Copy    int // number of the copy, from 0
	traffic *Traffic
}

// Notifications yields all notifications in order of arrival. This order is only roughly the
// order of creation.
func (t *Traffic) Notifications() iter.Seq[*Notification] {
	return func(yield func(*Notification) bool) {
		var under arrivalQueue
		for o := range t.Objects() {
			for len(under) > 0 && under[0].Arrives.Before(o.Created) {
				if !yield(heap.Pop(&under).(*Notification)) {
					return
				}
			}
			for _, n := range t.arrivals(o) {
				heap.Push(&under, n)
			}
		}
		for len(under) > 0 {
			if !yield(heap.Pop(&under).(*Notification)) {
				return
			}
		}
	}
}

func (t *Traffic) arrivals(o Object) (all []*Notification) {
	rng := t.random(uint64(o.Number) | 1<<63)
	late := o.Created.Add(2 * t.MaxInterval).Before(t.Start.Add(t.Span)) // whether enough time is left for long delays
	first := o.Created.Add(t.delay(rng, late))
	for c := range o.Copies {
		n := &Notification{Object: o, Arrives: first, Copy: c, traffic: t}
		if c > 0 {
			n.Arrives = first.Add(t.interval(o.Number, rng, late))
		}
		all = append(all, n)
	}
	return all
}

// delay draws the delay of a notification. Most delays are seconds. One in a hundred is
// minutes, and one in a thousand is hours.
func (t *Traffic) delay(rng *rand.Rand, late bool) time.Duration {
	switch p := rng.IntN(1000); {
	case late && p == 0:
		return logUniform(rng, 5*time.Minute, t.MaxInterval)
	case late && p < 10:
		return logUniform(rng, time.Minute, 5*time.Minute)
	}
	return logUniform(rng, 300*time.Millisecond, 10*time.Second)
}

// interval draws the time between the first notification and a copy. It is often below 15
// seconds. The shortest and the longest interval both occur.
func (t *Traffic) interval(object int, rng *rand.Rand, late bool) time.Duration {
	switch object {
	case t.outermostTwice(1):
		return t.MaxInterval
	case t.outermostTwice(-1):
		return t.MinInterval
	}
	if rng.IntN(10) < 6 || !late {
		return logUniform(rng, t.MinInterval, 15*time.Second)
	}
	return logUniform(rng, 15*time.Second, t.MaxInterval)
}

// outermostTwice returns the first or the last object that is notified twice.
func (t *Traffic) outermostTwice(sign int) int {
	found := -1
	for i, copies := range t.copies {
		if copies == 2 && (found < 0 || sign*i < sign*found) {
			found = i
		}
	}
	return found
}

// logUniform returns a random duration between least and most. All orders of magnitude are
// equally likely.
func logUniform(rng *rand.Rand, least, most time.Duration) time.Duration {
	return time.Duration(float64(least) * math.Pow(float64(most)/float64(least), rng.Float64()))
}

// Text returns the notification in the format of AWS. All copies of a notification have the
// same x-amz-id-2.
// https://docs.aws.amazon.com/AmazonS3/latest/userguide/notification-content-structure.html
func (n *Notification) Text() string {
	t := n.traffic
	rng := t.random(uint64(n.Number) | 1<<62)
	var id [48]byte
	for i := range id {
		id[i] = byte(rng.Uint32())
	}
	return fmt.Sprintf(`{"Records":[{"eventVersion":"2.1","eventSource":"aws:s3","awsRegion":"us-east-1","eventTime":%q,"eventName":"ObjectCreated:Put",`+
		`"userIdentity":{"principalId":"AWS:AIDAJDPLRKLG7UEXAMPLE"},"requestParameters":{"sourceIPAddress":"127.0.0.1"},`+
		`"responseElements":{"x-amz-request-id":"%016X","x-amz-id-2":%q},`+
		`"s3":{"s3SchemaVersion":"1.0","configurationId":"uploads","bucket":{"name":%q,"ownerIdentity":{"principalId":"A3NL1KOZZKExample"},"arn":"arn:aws:s3:::%s"},`+
		`"object":{"key":%q,"size":%d,"eTag":%q,"sequencer":"00%016X"}}}]}`,
		n.Created.Format("2006-01-02T15:04:05.000Z"), rng.Uint64(), base64.StdEncoding.EncodeToString(id[:]), t.Bucket, t.Bucket,
		url.QueryEscape(n.Key()), len(n.Content()), n.ETag(), n.Created.UnixMicro())
}

// arrivalQueue is a heap of notifications. The next notification to arrive is on top.
type arrivalQueue []*Notification

func (w arrivalQueue) Len() int           { return len(w) }
func (w arrivalQueue) Less(i, j int) bool { return w[i].Arrives.Before(w[j].Arrives) }
func (w arrivalQueue) Swap(i, j int)      { w[i], w[j] = w[j], w[i] }
func (w *arrivalQueue) Push(x any)        { *w = append(*w, x.(*Notification)) }

func (w *arrivalQueue) Pop() any {
	old := *w
	n := old[len(old)-1]
	*w = old[:len(old)-1]
	return n
}
