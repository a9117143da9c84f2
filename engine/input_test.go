package engine_test

import (
	"strings"

	"github.com/pawlhq/pawl/engine"
	"github.com/pawlhq/pawl/event"
	"github.com/pawlhq/pawl/ledger"
)

// parseKey parses "key" or "pipeline/key".
func parseKey(text string) ledger.RowKey {
	pipeline, key, ok := strings.Cut(text, "/")
	if !ok {
		pipeline, key = "p", text
	}
	return ledger.RowKey{Pipeline: pipeline, Bucket: "b", Key: key}
}

func (s *script) item(words []string) engine.Item {
	key := parseKey(words[0])
	ev := event.Event{Object: key.Object(), Kind: event.Created, Name: "Put", Time: s.world.now}
	trusted := true
	for _, word := range words[1:] {
		name, value, _ := strings.Cut(word, "=")
		switch name {
		case "seq":
			seq, err := event.ParseSequencer(value)
			if err != nil {
				s.d.Fatalf(s.t, "%v", err)
			}
			ev.Sequencer = seq
		case "untrusted":
			trusted = false
		case "removed":
			ev.Kind, ev.Name = event.Removed, "Delete"
		case "size":
			ev.Size = int64(s.number(value))
		case "etag":
			ev.ETag = value
		case "time":
			ev.Time = start.Add(s.duration(value))
		default:
			s.d.Fatalf(s.t, "unknown word %s", word)
		}
	}
	return engine.Item{Key: key, Event: ev, Trusted: trusted}
}

// The default fence is that of the running task.
func (s *script) finished(w *worker, words []string) engine.Finished {
	key := parseKey(words[0])
	in := engine.Finished{Key: key, Acted: true}
	if a := w.tasks[key]; a != nil {
		in.Fence = a.Fence
		in.Ending.Read.Kind = a.Want.Kind
		delete(w.tasks, key)
	}
	for _, word := range words[1:] {
		name, value, _ := strings.Cut(word, "=")
		switch name {
		case "completed":
			in.Result = engine.Completed
		case "failed", "permanent":
			in.Result = engine.Failed
			in.Failure.Message = name
			in.Failure.Permanent = name == "permanent"
		case "released":
			in.Result = engine.Released
		case "nothing":
			in.Acted = false
		case "sent":
			in.Ending.Sent = true
		case "unsure":
			in.Ending.Sent, in.Ending.Unsure = true, true
		case "after":
			in.Failure.After = s.duration(value)
		case "shared":
			cause, n, _ := strings.Cut(value, ":")
			in.Shared = engine.Shared{Cause: cause, Objects: s.number(n)}
		case "fence":
			in.Fence = int64(s.number(value))
		default:
			s.d.Fatalf(s.t, "unknown word %s", word)
		}
	}
	return in
}
