package archive

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/pawlhq/pawl/bucket"
	"github.com/pawlhq/pawl/event"
	"github.com/pawlhq/pawl/internal/simkit"
)

// The published algorithm groups records by minute and drops those that a listing of the minute
// shows. It writes the others under a key of the first and last number.
func TestPublishedDeduplicationLosesRecords(t *testing.T) {
	pool := newPool()
	defer pool.Close()
	lost, doubled, worlds := 0, 0, 0
	for seed := range uint64(600) {
		w := newWorld(pool, &simkit.World{Tape: simkit.NewTape(seed + 1)})
		if p := &w.plan; p.outage || p.loses || p.second || p.restores || p.misses {
			continue // the algorithm does not handle these faults
		}
		worlds++
		w.work = (*thread).runPublished
		w.run(func() bool { return w.Now > w.plan.faultsEnd()+2*time.Hour })
		n := map[string]int{}
		for _, o := range w.objects {
			for _, e := range decodeLines(o.body) {
				for _, r := range e.UserRecords {
					n[string(r.Data)]++
				}
			}
		}
		l, d := 0, 0
		for _, s := range w.stream.shards {
			done := begin // records up to this checkpoint count as stored
			if reg := w.table.registers[s.ID]; reg != nil {
				done = Number(reg.value)
			}
			for _, e := range s.records {
				if done.less(e.Number) {
					break
				}
				for _, r := range e.UserRecords {
					switch n[string(r.Data)] {
					case 0:
						l = 1
					case 1:
					default:
						d = 1
					}
				}
			}
		}
		lost, doubled = lost+l, doubled+d
		pool.Abort()
	}
	t.Logf("of %d worlds, records were lost in %d and doubled in %d", worlds, lost, doubled)
	if lost == 0 || doubled == 0 {
		t.Error("the worlds are too kind")
	}
}

func (t *thread) runPublished() {
	checking := true
	for !t.dead {
		t.publishShard(&checking)
		t.wait(30 * time.Second)
	}
}

func (t *thread) publishShard(checking *bool) {
	s := streamOf{t}
	all, err := s.Shards(context.Background())
	if err != nil {
		return
	}
	all = slices.DeleteFunc(all, func(one Shard) bool {
		holder := t.table.leases[one.ID]
		return holder != nil && !holder.dead && holder.frozen <= t.Now
	})
	if len(all) == 0 {
		return
	}
	id := all[t.Tape.Choose(len(all))].ID
	t.table.leases[id] = t
	defer delete(t.table.leases, id)
	reg, err := registersOf{t}.ReadRegister(context.Background(), id)
	if err != nil {
		return
	}
	r, err := s.Open(context.Background(), id, Position{At: Number(reg.Value).after()})
	if err != nil {
		return
	}
	checkpoint, until := t.Now, t.Now+10*time.Minute
	for t.Now < until {
		page, err := r.Next(threadContext{context.Background(), t})
		if err != nil || page.End && len(page.Records) == 0 {
			return
		}
		if err := t.publish(id, page.Records, checking); err != nil {
			return
		}
		if n := len(page.Records); n > 0 && t.Now >= checkpoint {
			reg.Version, err = registersOf{t}.WriteRegister(context.Background(), id, reg.Version, []byte(page.Records[n-1].Number))
			if err != nil {
				return
			}
			checkpoint = t.Now + 30*time.Second
		}
	}
}

func (t *thread) publish(shard string, records []Record, checking *bool) error {
	groups := map[time.Time][]Record{}
	var minutes []time.Time
	for _, e := range records {
		m := minute(e.Arrival)
		if groups[m] == nil {
			minutes = append(minutes, m)
		}
		groups[m] = append(groups[m], e)
	}
	for _, m := range minutes {
		group := groups[m]
		slices.SortStableFunc(group, func(a, b Record) int { return a.Arrival.Compare(b.Arrival) })
		first, last := group[0].Number, group[len(group)-1].Number
		prefix := "p/" + m.Format(minuteLayout) + "/"
		if *checking {
			rest, err := t.unpublished(prefix, first, last, group)
			if err != nil {
				return err
			}
			*checking = len(rest) < len(group)
			group = rest
		}
		body, _ := codec{t.proc}.Encode("ndjson", shard, group)
		o := bucket.Object{Body: strings.NewReader(string(body)), Size: int64(len(body))}
		key := fmt.Sprintf("%s%019d-%s-%s", prefix, math.MaxInt64-m.UnixMilli(), first, last)
		for {
			if _, err := (storeOf{t}).Put(context.Background(), event.Object{Key: key}, o, bucket.Condition{}); err == nil {
				break
			} else if errors.Is(err, errDead) || t.dead {
				return err
			}
			o.Body = strings.NewReader(string(body))
			t.wait(time.Second)
		}
	}
	return nil
}

func (t *thread) unpublished(prefix string, first, last Number, group []Record) ([]Record, error) {
	without := func(from, to Number) {
		group = slices.DeleteFunc(slices.Clone(group), func(e Record) bool { return !e.Number.less(from) && !to.less(e.Number) })
	}
	for info, err := range (storeOf{t}).List(context.Background(), "b", prefix, "") {
		if err != nil {
			return nil, err
		}
		fields := strings.Split(info.Key, "-")
		f, l := Number(fields[len(fields)-2]), Number(fields[len(fields)-1])
		switch {
		case l.less(first):
			return group, nil
		case last.less(f):
			without(first, last)
		default:
			without(f, l)
		}
	}
	return group, nil
}
