// Package traffic generates the notifications that a bucket in AWS sends within several days. A seed
// determines them. Memory use depends only on the number of notifications in transit.
//
// [Published] has figures that were measured in a production account: "AWS S3 Event Notifications have
// 'probably once' delivery" (Eric Urban, 2019). The article has no figures for lost notifications and
// delays: this package adds both.
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

// Shape describes traffic and its faults.
type Shape struct {
	Span        time.Duration // all notifications arrive within it
	Keys        int
	Twice       int           // keys with two notifications
	Thrice      int           // keys with three
	MinInterval time.Duration // between a notification and its repetition
	MaxInterval time.Duration // likewise, and longest delay
	Lost        int           // objects without a notification, in addition to Keys
}

// Published is the measured shape. One notification in a thousand is lost.
var Published = Shape{
	Span: 104 * time.Hour, Keys: 507_549, Twice: 151, Thrice: 3, MinInterval: 62 * time.Millisecond, MaxInterval: 22_162 * time.Second, Lost: 507,
}

// Divided returns 1/n of the keys in the same time.
func (s Shape) Divided(n int) Shape {
	s.Keys /= n
	s.Twice, s.Thrice, s.Lost = max(1, s.Twice/n), max(1, s.Thrice/n), max(1, s.Lost/n)
	return s
}

// Notifications returns the number of notifications that arrive.
func (s Shape) Notifications() int { return s.Keys + s.Twice + 2*s.Thrice }

// Objects returns the number of objects in the bucket.
func (s Shape) Objects() int { return s.Keys + s.Lost }

// Traffic is the traffic of a bucket.
type Traffic struct {
	Shape
	Bucket string
	Start  time.Time
	Seed   uint64

	copies map[int]int // by object, if it is not 1
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

func (t *Traffic) random(i uint64) *rand.Rand { return rand.New(rand.NewPCG(t.Seed, i)) }

func (t *Traffic) copyCount(i int) int {
	if n, ok := t.copies[i]; ok {
		return n
	}
	return 1
}

// Object is created once and never changes.
type Object struct {
	Number  int // in order of creation, from 0
	Created time.Time
	Copies  int // of its notification; 0 if it is lost
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

// Key returns the object's key. Within an hour, keys are not in order of creation.
func (o Object) Key() string {
	return fmt.Sprintf("data/%s/%08x part %d.json", o.Created.Format("2006/01/02/15"), uint32(o.Number)*2654435761, o.Number)
}

// Content returns the object's content, which is unique.
func (o Object) Content() string { return fmt.Sprintf(`{"object":%d}`, o.Number) }

// ETag returns the ETag of the content.
func (o Object) ETag() string {
	sum := md5.Sum([]byte(o.Content()))
	return hex.EncodeToString(sum[:])
}

// Notification is one that arrives.
type Notification struct {
	Object
	Arrives time.Time
	Copy    int // from 0
	traffic *Traffic
}

// Notifications yields all notifications in order of arrival.
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
	late := o.Created.Add(2 * t.MaxInterval).Before(t.Start.Add(t.Span)) // long delays must end in time
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

// Most delays are seconds. One in a hundred is minutes, and one in a thousand is hours.
func (t *Traffic) delay(rng *rand.Rand, late bool) time.Duration {
	switch p := rng.IntN(1000); {
	case late && p == 0:
		return logUniform(rng, 5*time.Minute, t.MaxInterval)
	case late && p < 10:
		return logUniform(rng, time.Minute, 5*time.Minute)
	}
	return logUniform(rng, 300*time.Millisecond, 10*time.Second)
}

// The shortest and the longest interval both occur.
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

func (t *Traffic) outermostTwice(sign int) int {
	found := -1
	for i, copies := range t.copies {
		if copies == 2 && (found < 0 || sign*i < sign*found) {
			found = i
		}
	}
	return found
}

// All orders of magnitude are equally likely.
func logUniform(rng *rand.Rand, least, most time.Duration) time.Duration {
	return time.Duration(float64(least) * math.Pow(float64(most)/float64(least), rng.Float64()))
}

// Text returns the notification in the format of AWS. All copies have the same x-amz-id-2.
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
