package sim

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/pawlhq/pawl/bucket"
	"github.com/pawlhq/pawl/engine"
	"github.com/pawlhq/pawl/event"
	"github.com/pawlhq/pawl/source"
	"github.com/pawlhq/pawl/worker"
)

func (w *World) change(th *object) {
	v := version{kind: event.Created}
	old := th.current()
	if old != nil && old.kind == event.Created && w.Tape.Chance(w.plan.removes) {
		v.kind = event.Removed
		delete(w.objectStore.stored, th.ref)
	} else {
		w.write(th, &v)
	}
	th.counter += 1 + w.Tape.Choose(20)
	v.sequencer = sequencer(th.counter, w.Tape.Choose(4))
	th.versions = append(th.versions, v)
	th.changedAt = w.Now
	if w.Trace != nil {
		w.logf(nil, "%s %s: %q, version %d, sequencer %s", th.ref.Bucket+"/"+th.ref.Key, v.kind, v.body, len(th.versions)-1, v.sequencer.Raw())
	}
	w.notify(th, &v)
}

func (w *World) write(th *object, v *version) {
	if w.Tape.Chance(w.plan.poison) {
		v.poison = poison(1 + w.Tape.Choose(int(poisons)-1))
	}
	v.body = th.bodyOf(len(th.versions), v.poison)
	if len(th.versions) > 0 && w.Tape.Chance(w.plan.repeats) {
		if old := th.versions[w.Tape.Choose(len(th.versions))]; old.kind == event.Created {
			v.body, v.poison = old.body, old.poison
		}
	}
	o := bucket.Object{ContentType: "text/plain"}
	if _, err := w.objectStore.put(th.ref, v.body, o, bucket.Condition{}); err != nil {
		panic(err)
	}
}

// Sequencers may have different lengths: trailing zeros are insignificant.
func sequencer(counter, tail int) event.Sequencer {
	s, err := event.ParseSequencer(fmt.Sprintf("%06X", counter) + [...]string{"", "0", "00", "8"}[tail])
	if err != nil {
		panic(err)
	}
	return s
}

type message struct {
	world  *World
	id     int
	events []event.Event
	sent   bool // no event can be added
	acked  bool
}

func (w *World) notify(th *object, v *version) {
	dialect := event.MinIO
	if w.plan.trusted {
		dialect = event.AWS
	}
	e := event.Event{
		Object: event.Object{Bucket: th.ref.Bucket, Key: th.ref.Key}, Kind: v.kind, Dialect: dialect,
		Time: w.time().Truncate(time.Second), Sequencer: v.sequencer, Name: "e" + strconv.Itoa(len(th.versions)-1),
	}
	if v.kind == event.Created {
		e.ETag, e.Size = etagOf(v.body), int64(len(v.body))
	}
	if w.Tape.Chance(w.plan.loses) {
		if w.Trace != nil {
			w.logf(nil, "the notification is lost")
		}
		return
	}
	for copies := 1; copies <= 3; copies++ {
		w.send(e)
		if !w.Tape.Chance(w.plan.doubles) {
			return
		}
	}
}

func (w *World) send(e event.Event) {
	if n := len(w.messages); n > 0 && !w.messages[n-1].sent && w.Tape.Chance(200) {
		m := w.messages[n-1]
		m.events = append(m.events, e)
		return
	}
	m := &message{world: w, id: len(w.messages), events: []event.Event{e}}
	w.messages = append(w.messages, m)
	delay := w.Tape.UpTo(3 * time.Second)
	if w.Tape.Chance(w.plan.delays) {
		delay += w.Tape.UpTo(w.plan.delay)
	}
	w.after(delay, m)
}

// Run delivers the message to a random worker, until one has acknowledged it.
func (m *message) Run() {
	w := m.world
	if m.acked {
		return
	}
	m.sent = true
	var able []*node
	for _, n := range w.nodes {
		if !n.draining {
			able = append(able, n)
		}
	}
	if len(able) == 0 {
		w.after(time.Second, m)
		return
	}
	n := able[w.Tape.Choose(len(able))]
	items, _, err := worker.Route(w.routed(), &source.Delivery{Events: m.events})
	if err != nil {
		panic(err)
	}
	w.nonces++
	id := uint64(w.nonces)
	n.deliveries[id] = m
	if w.Trace != nil {
		w.logf(n, "receives message %d: %s", m.id, names(m.events))
	}
	n.enqueue(engine.Deliver{ID: id, Items: items})
}

func names(events []event.Event) string {
	var b strings.Builder
	for _, e := range events {
		fmt.Fprintf(&b, " %s/%s %s", e.Object.Bucket, e.Object.Key, e.Name)
	}
	return b.String()
}

func (w *World) routed() []*worker.Pipeline {
	var all []*worker.Pipeline
	for _, p := range w.pipelines {
		if p != nil {
			all = append(all, p)
		}
	}
	return all
}
