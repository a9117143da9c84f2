package archive

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/pawlhq/pawl/bucket"
	"github.com/pawlhq/pawl/event"
	"github.com/pawlhq/pawl/ledger"
)

type stream struct {
	shards []*simShard
	next   int
}

type simShard struct {
	Shard
	records []simRecord
	closed  time.Duration // 0 while it is open
}

type simRecord struct {
	Record
	at time.Duration
}

func (s *simShard) trimmed(now, retention time.Duration) int {
	i, _ := slices.BinarySearchFunc(s.records, now-retention, func(e simRecord, t time.Duration) int {
		if e.at <= t {
			return -1
		}
		return 1
	})
	return i
}

func (s *stream) find(id string) *simShard {
	i := slices.IndexFunc(s.shards, func(one *simShard) bool { return one.ID == id })
	return s.shards[i]
}

// The numbers grow in length during a world.
func (w *world) number() Number {
	w.stream.next += 1 + w.Tape.Choose(7)
	return Number(strconv.Itoa(w.stream.next))
}

func (w *world) shard(parents ...string) *simShard {
	s := &simShard{Shard: Shard{ID: fmt.Sprintf("shard-%d", len(w.stream.shards)), First: w.number(), Parents: parents}}
	w.stream.shards = append(w.stream.shards, s)
	return s
}

func (w *world) open() (open []*simShard) {
	for _, s := range w.stream.shards {
		if s.closed == 0 {
			open = append(open, s)
		}
	}
	return open
}

func (w *world) put() {
	open := w.open()
	if len(open) == 0 {
		return
	}
	s := open[w.Tape.Choose(len(open))]
	arrival := w.clock()
	if w.plan.shuffled {
		arrival = arrival.Add(w.Tape.UpTo(4*time.Minute) - 2*time.Minute)
	}
	e := Record{Number: w.number(), Arrival: arrival, PartitionKey: "k"}
	switch n := 1; {
	case w.plan.malformed && w.Tape.Chance(200):
		e.Malformed, e.Raw = errors.New("malformed"), []byte("raw")
	default:
		if w.plan.aggregates {
			n += w.Tape.Choose(3)
		}
		for i := range n {
			e.UserRecords = append(e.UserRecords, UserRecord{Number: e.Number, Sub: i, Arrival: arrival, Data: []byte(w.name())})
		}
	}
	s.records = append(s.records, simRecord{e, w.Now})
	w.Tracef("%s gets %s, %d records of %s", s.ID, e.Number, len(e.UserRecords), arrival.Format("15:04:05"))
}

func (w *world) closeShard(s *simShard) {
	s.closed, s.Last = max(w.Now, 1), w.number()
	w.Tracef("%s is closed at %s", s.ID, s.Last)
}

func (w *world) reshard() {
	open := w.open()
	if len(open) == 0 {
		return
	}
	i := w.Tape.Choose(len(open))
	w.closeShard(open[i])
	if len(open) > 1 && w.Tape.Chance(500) {
		j := (i + 1) % len(open)
		w.closeShard(open[j])
		w.shard(open[i].ID, open[j].ID)
		return
	}
	w.shard(open[i].ID)
	w.shard(open[i].ID)
}

type streamOf struct{ *thread }

func (s streamOf) unavailable(err error) error {
	if errors.Is(err, errSilent) {
		return fmt.Errorf("%w: %w", ErrUnavailable, err)
	}
	return err
}

func (s streamOf) Identify(context.Context) (StreamID, time.Duration, error) {
	return StreamID{"arn", epoch}, s.plan.retention, nil
}

func (s streamOf) Shards(context.Context) (all []Shard, err error) {
	err = s.call(func(now time.Duration) error {
		all = nil
		for _, one := range s.stream.shards {
			if one.closed == 0 || now < one.closed+s.plan.retention {
				all = append(all, one.Shard)
			}
		}
		s.noteListed(all)
		return nil
	}, false)
	return all, s.unavailable(err)
}

type reader struct {
	*thread
	shard *simShard
	at    int
}

// Open implements [Stream]. It silently skips expired records.
func (s streamOf) Open(_ context.Context, shard string, from Position) (Reader, error) {
	r := &reader{thread: s.thread, shard: s.stream.find(shard)}
	err := s.call(func(now time.Duration) error {
		if r.shard.closed != 0 && now >= r.shard.closed+r.plan.retention {
			return ErrNoStream
		}
		r.at = r.shard.trimmed(now, r.plan.retention)
		for ; r.at < len(r.shard.records); r.at++ {
			e := r.shard.records[r.at]
			if !e.Number.less(from.At) && !e.Arrival.Before(from.Time) {
				break
			}
		}
		return nil
	}, false)
	return r, s.unavailable(err)
}

func (r *reader) Next(ctx context.Context) (page Page, err error) {
	if ctx.Err() != nil {
		return page, ctx.Err()
	}
	err = r.call(func(now time.Duration) error {
		page = Page{}
		r.at = max(r.at, r.shard.trimmed(now, r.plan.retention))
		for n := 2 + r.Tape.Choose(4); n > 0 && r.at < len(r.shard.records); n-- {
			page.Records = append(page.Records, r.shard.records[r.at].Record)
			r.at++
		}
		if r.at < len(r.shard.records) {
			page.Behind = now - r.shard.records[r.at].at
		} else {
			page.End = r.shard.closed != 0
		}
		return nil
	}, false)
	if err == nil && len(page.Records) == 0 && !page.End {
		r.wait(time.Second << min(r.idle, 9))
		r.idle++
	} else if err == nil {
		r.idle = 0
	}
	return page, streamOf{r.thread}.unavailable(err)
}

type table struct {
	registers map[string]*register
	leases    map[string]*thread
}

func newTable() *table { return &table{map[string]*register{}, map[string]*thread{}} }

type register struct {
	value    []byte
	version  string
	progress *Progress // decoded on first use
}

type registersOf struct{ *thread }

func (r registersOf) ReadRegister(_ context.Context, name string) (reg ledger.Register, err error) {
	table := r.table.registers
	err = r.call(func(time.Duration) error {
		reg = ledger.Register{Name: name}
		if found := table[name]; found != nil {
			reg.Version, reg.Value = found.version, found.value
		}
		r.losses = r.world.losses
		return nil
	}, false)
	return reg, err
}

func (r registersOf) WriteRegister(_ context.Context, name, version string, value []byte) (next string, err error) {
	table := r.table.registers // a late request does not reach a restored ledger
	err = r.call(func(time.Duration) error {
		now := ""
		if found := table[name]; found != nil {
			now = found.version
		}
		if now != version {
			return ledger.ErrRegisterChanged
		}
		next, r.losses = r.name(), r.world.losses
		table[name] = &register{value: value, version: next}
		r.Tracef("process %d writes %s: %s", r.id, name, value)
		return nil
	}, true)
	return next, err
}

func (r registersOf) RemoveRegister(_ context.Context, name, version string) error {
	table := r.table.registers
	return r.call(func(time.Duration) error {
		found := table[name]
		if found == nil || found.version != version {
			return ledger.ErrRegisterChanged
		}
		r.Tracef("process %d removes %s", r.id, name)
		r.checkRemoved(name, found)
		delete(table, name)
		return nil
	}, true)
}

func (r registersOf) ListRegisters(_ context.Context, prefix string) iter.Seq2[ledger.Register, error] {
	return func(yield func(ledger.Register, error) bool) {
		table := r.table.registers
		for _, name := range slices.Sorted(maps.Keys(table)) {
			if table[name] != nil && strings.HasPrefix(name, prefix) && !yield(ledger.Register{Name: name, Version: table[name].version, Value: table[name].value}, nil) {
				return
			}
		}
	}
}

type object struct {
	bucket.Info
	body []byte
	name Name
	data bool // it has records, or is a gap
}

func newObject(key, etag string, body []byte, meta map[string]string) *object {
	o := &object{Info: bucket.Info{Key: key, ETag: etag, Size: int64(len(body)), Metadata: meta}, body: body}
	var err error
	o.name, err = ParseKey("p/", key)
	o.data = err == nil && !voided(o.Info)
	return o
}

type storeOf struct{ *thread }

func (s storeOf) failed(err error, kind error) error {
	if errors.Is(err, errSilent) {
		return fmt.Errorf("%w: %w", kind, err)
	}
	return err
}

// ask records the date of the response.
func (s storeOf) ask(do func(now time.Duration) error, writes bool) error {
	var date time.Duration
	err := s.call(func(now time.Duration) error {
		date = now.Truncate(time.Second)
		return do(now)
	}, writes)
	if !errors.Is(err, errSilent) && !errors.Is(err, errDead) {
		s.date, s.dated = date, s.Now
	}
	return err
}

func (s storeOf) StoreTime(now time.Time) time.Time {
	if s.dated == 0 {
		return now
	}
	return epoch.Add(s.date + s.Now - s.dated)
}

func (s storeOf) Head(_ context.Context, ref event.Object) (info bucket.Info, err error) {
	err = s.ask(func(time.Duration) error {
		o := s.objects[ref.Key]
		if o == nil {
			return bucket.ErrNotFound
		}
		info = o.Info
		return nil
	}, false)
	return info, s.failed(err, bucket.ErrUnavailable)
}

func (s storeOf) Get(_ context.Context, ref event.Object) (info bucket.Info, body io.ReadCloser, err error) {
	err = s.ask(func(time.Duration) error {
		o := s.objects[ref.Key]
		if o == nil {
			return bucket.ErrNotFound
		}
		info, body = o.Info, io.NopCloser(bytes.NewReader(o.body))
		return nil
	}, false)
	return info, body, s.failed(err, bucket.ErrUnavailable)
}

func (s storeOf) Put(ctx context.Context, ref event.Object, o bucket.Object, c bucket.Condition) (string, error) {
	return s.PutSigned(ctx, ref, o, c, epoch, 1000*time.Hour)
}

func (s storeOf) PutSigned(_ context.Context, ref event.Object, o bucket.Object, c bucket.Condition, signed time.Time, valid time.Duration) (etag string, err error) {
	var body []byte
	if o.Body != nil {
		body, _ = io.ReadAll(o.Body)
	}
	losses := s.losses
	err = s.ask(func(time.Duration) error {
		if losses != s.world.losses && !strings.Contains(ref.Key, reserved) {
			return errSilent // see restoreRegisters
		}
		if epoch.Add(s.Now).After(signed.Add(valid)) {
			return fmt.Errorf("%w: %s", bucket.ErrExpired, ref.Key)
		}
		if !s.calm && s.Tape.Chance(30) { // a slow upload
			s.After(s.Tape.UpTo(maxUploadTime), func() {
				if losses == s.world.losses {
					_, _ = s.land(ref.Key, body, o.Metadata, c)
				}
			})
			return errSilent
		}
		etag, err = s.land(ref.Key, body, o.Metadata, c)
		return err
	}, true)
	return etag, s.failed(err, bucket.ErrUnclear)
}

func (s storeOf) land(key string, body []byte, meta map[string]string, c bucket.Condition) (string, error) {
	old := s.objects[key]
	if c.IfAbsent && old != nil || c.IfMatch != "" && (old == nil || old.ETag != c.IfMatch) {
		return "", bucket.ErrPrecondition
	}
	o := newObject(key, s.name(), body, meta)
	s.objects[key] = o
	s.Tracef("process %d stores %s", s.id, key)
	s.landed(key, o, old)
	return o.ETag, nil
}

func (storeOf) Delete(context.Context, event.Object, bucket.Condition) error {
	panic("an archive deletes nothing")
}

func (s storeOf) List(_ context.Context, _, prefix, after string) iter.Seq2[bucket.Info, error] {
	return func(yield func(bucket.Info, error) bool) {
		for {
			var page []bucket.Info
			err := s.ask(func(time.Duration) error {
				page = nil
				for _, key := range slices.Sorted(maps.Keys(s.objects)) {
					if len(page) < 3 && key > after && strings.HasPrefix(key, prefix) {
						page = append(page, s.objects[key].Info)
					}
				}
				return nil
			}, false)
			if err != nil {
				yield(bucket.Info{}, s.failed(err, bucket.ErrUnavailable))
				return
			}
			for _, info := range page {
				if after = info.Key; !yield(info, nil) {
					return
				}
			}
			if len(page) < 3 {
				return
			}
		}
	}
}
