//go:build unix

package e2e

import (
	"encoding/json"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/pawlhq/pawl/event"
)

// outputChange is a change in the store's order, as its notification reports it. A removal has no fence.
type outputChange struct {
	event.Event
	fence int64
	etag  string
}

func (p *outputChange) String() string {
	return fmt.Sprintf("%s of %s by fence %d from %s", p.Name, p.Object, p.fence, p.etag)
}

func parseOutputChanges(bodies [][]byte, prefix string) (map[string][]*outputChange, error) {
	all := map[string][]*outputChange{}
	for _, body := range bodies {
		batch, err := event.Parse(body, event.Detect)
		if err != nil {
			return nil, err
		}
		var raw struct {
			Records []struct {
				S3 struct {
					Object struct{ UserMetadata map[string]string }
				}
			}
		}
		if err := json.Unmarshal(body, &raw); err != nil {
			return nil, err
		}
		if len(batch.Events) != 1 || len(raw.Records) != 1 {
			continue
		}
		p := &outputChange{Event: batch.Events[0]}
		if err := p.parseMetadata(raw.Records[0].S3.Object.UserMetadata); err != nil {
			return nil, err
		}
		key := strings.TrimPrefix(p.Object.Key, prefix)
		all[key] = append(all[key], p)
	}
	for _, writes := range all {
		slices.SortStableFunc(writes, func(a, b *outputChange) int { return a.Sequencer.CompareSameKey(b.Sequencer) })
	}
	return all, nil
}

func (p *outputChange) parseMetadata(metadata map[string]string) error {
	for name, value := range metadata {
		switch strings.ToLower(name) {
		case "x-amz-meta-pawl-fence":
			if _, err := fmt.Sscan(value, &p.fence); err != nil {
				return err
			}
		case "x-amz-meta-pawl-source":
			source, err := url.ParseQuery(value)
			if err != nil {
				return err
			}
			p.etag = source.Get("etag")
		}
	}
	return nil
}

// outputViolations compares the changes of one output with its row's history, and with the input's contents in
// the order of their PUTs. It counts late writes: the writes that follow a write with a higher fence. Pawl
// guarantees:
//
//   - Every write has a claim.
//   - Every completed attempt that had an effect and left an output has a write.
//   - Only an attempt of unknown result, or one completed while a copy of its write was outstanding, has
//     a late write.
//   - An older content never replaces a newer one, except after a removal. (A verification repairs that; other
//     checks compare the final outputs.)
func outputViolations(l *rowHistory, writes []*outputChange, puts []string) (bad []string, late int) {
	complain := func(format string, args ...any) { bad = append(bad, fmt.Sprintf(format, args...)) }
	var highest int64
	var last *outputChange
	seen := map[int64]bool{}
	for i, w := range writes {
		if w.Kind != event.Created {
			continue
		}
		seen[w.fence] = true
		a := l.byFence(w.fence)
		switch {
		case a == nil:
			complain("%s, which was never granted", w)
		case w.fence < highest:
			late++
			if !a.unknown && !a.unsure {
				complain("%s, after one by %d, although it %s", w, highest, a.outcome)
			}
		}
		if last != nil && slices.Index(puts, w.etag) < slices.Index(puts, last.etag) && !removedBetween(writes[:i], last, w) && !removedBetween(writes[i:], last, w) {
			complain("%s replaces a newer one: %s", w, last)
		}
		highest, last = max(highest, w.fence), w
	}
	for _, a := range l.attempts {
		if a.committedEffect() && a.have.Kind == event.Created && !seen[a.fence] {
			complain("fence %d was completed without a write", a.fence)
		}
	}
	return bad, late
}

// The store dates a write when it is made, but a removal when it is announced, slightly later.
func removedBetween(changes []*outputChange, after, before *outputChange) bool {
	return slices.ContainsFunc(changes, func(c *outputChange) bool {
		return c.Kind == event.Removed && c.Sequencer.CompareSameKey(after.Sequencer) > 0 && c.Time.Before(before.Time.Add(time.Second))
	})
}
