package e2e

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/pawlhq/pawl/event"
)

// published is a write of an output, as the store's own notification tells of
// it: in the store's order, and with the fence that the writer had.
type published struct {
	event.Event
	fence int64
}

func (p *published) String() string {
	return fmt.Sprintf("%s of %s by fence %d", p.Name, p.Object, p.fence)
}

// publications reads notifications about an output bucket, by input key. Removals
// are left out: they tell no fence, and a sequencer of their own making.
func publications(bodies [][]byte, prefix string) (map[string][]*published, error) {
	all := map[string][]*published{}
	for _, body := range bodies {
		batch, err := event.Parse(body, event.Detect)
		if err != nil {
			return nil, err
		}
		var meta struct {
			Records []struct {
				S3 struct {
					Object struct{ UserMetadata map[string]string }
				}
			}
		}
		if err := json.Unmarshal(body, &meta); err != nil {
			return nil, err
		}
		for i, e := range batch.Events {
			if e.Kind != event.Created || len(meta.Records) != len(batch.Events) {
				continue
			}
			p := &published{Event: e}
			for name, value := range meta.Records[i].S3.Object.UserMetadata {
				if strings.EqualFold(name, "x-amz-meta-pawl-fence") {
					if _, err := fmt.Sscan(value, &p.fence); err != nil {
						return nil, err
					}
				}
			}
			key := strings.TrimPrefix(e.Object.Key, prefix)
			all[key] = append(all[key], p)
		}
	}
	for _, writes := range all {
		slices.SortStableFunc(writes, func(a, b *published) int { return a.Sequencer.CompareSameKey(b.Sequencer) })
	}
	return all, nil
}

// fenced compares the writes of one output with what the ledger says of it, and
// counts those that came late: after one of a higher fence. This is promised:
//
//   - No write without a claim.
//   - Behind each completed attempt that had an effect, and left an output,
//     stands a write of its own.
//   - Late is only the write of an attempt that lost its lease. (At rest it is
//     healed, or was harmless: that the outputs are right is seen elsewhere.)
func fenced(l *life, writes []*published) (bad []string, late int) {
	var highest int64
	seen := map[int64]bool{}
	for _, w := range writes {
		seen[w.fence] = true
		a := l.byFence(w.fence)
		switch {
		case a == nil:
			bad = append(bad, w.String()+", which was never granted")
		case w.fence < highest:
			late++
			if !a.unknown {
				bad = append(bad, fmt.Sprintf("%s, after one by %d, though it %s", w, highest, a.end))
			}
		}
		highest = max(highest, w.fence)
	}
	for _, a := range l.attempts {
		if a.acted() && a.have.Kind == event.Created && !seen[a.fence] {
			bad = append(bad, fmt.Sprintf("fence %d was completed without a write", a.fence))
		}
	}
	return bad, late
}
