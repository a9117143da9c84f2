package archive

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/pawlhq/pawl/bucket"
)

type announcedObject struct {
	shard string
	Range
}

type malformedCount struct {
	shard string
	Range
	count int
	key   string
}

// The names below malformedPrefix are <shard>-<number>.json.
func (a *Archive) malformedPrefix() string { return a.Prefix + reserved + "malformed/" }

func (v *verifier) addIntent(p ShardProgress) {
	if p.Malformed > 0 {
		v.counted = append(v.counted, malformedCount{p.Shard, Range{begin, p.Committed}, p.Malformed, ""})
	}
	if p.Intent == nil {
		return
	}
	for _, o := range p.Intent.Objects {
		v.pending[o.Key] = announcedObject{p.Shard, o.Range}
		if len(o.Malformed) > 0 {
			v.counted = append(v.counted, malformedCount{p.Shard, o.Range, len(o.Malformed), o.Key})
		}
	}
}

// checkPending reads the register first. If the intent no longer contains an object, a worker has
// committed it, or has voided its key.
func (v *verifier) checkPending(ctx context.Context) error {
	for _, key := range slices.Sorted(maps.Keys(v.pending)) {
		o := v.pending[key]
		p, _, err := v.Progress(ctx, v.claim, o.shard)
		if err != nil {
			return err
		}
		announced := p.Intent != nil && slices.ContainsFunc(p.Intent.Objects, func(one Planned) bool { return one.Key == key })
		info, err := v.head(ctx, key)
		f := Finding{Shard: o.shard, Range: o.Range.String(), Keys: []string{key}}
		switch {
		case err != nil && !errors.Is(err, bucket.ErrNotFound):
			err = v.unreadable(ctx, o.shard, key, err)
		case err == nil && (!announced || !voided(info)):
			err = nil // stored or abandoned
		case announced:
			f.Kind, f.What = Pending, "the object is announced but not stored yet: the owner of the shard stores it, or a gap if its records have expired"
			v.addNote(f)
			err = nil
		default:
			f.Kind, f.What = Missing, "the object was committed while verify ran, but it is missing"
			v.addFinding(f)
			err = nil
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// checkMalformed must run after the listing: a worker stores a malformed record before it writes
// the intent with its number.
func (v *verifier) checkMalformed(ctx context.Context) error {
	for info, err := range v.Store.List(ctx, v.Bucket, v.malformedPrefix(), "") {
		if info.Unlistable(err) {
			err = v.unreadable(ctx, "", info.Key, err)
		}
		if err != nil {
			return err
		}
		name := strings.TrimSuffix(strings.TrimPrefix(info.Key, v.malformedPrefix()), ".json")
		if i := strings.LastIndexByte(name, '-'); i > 0 {
			v.report.Malformed++
			v.malformed[name[:i]] = append(v.malformed[name[:i]], Number(name[i+1:]))
		}
	}
	for _, numbers := range v.malformed {
		slices.SortFunc(numbers, Number.Compare)
	}
	for _, c := range v.counted {
		numbers := v.malformed[c.shard]
		first, _ := slices.BinarySearchFunc(numbers, c.Start.after(), Number.Compare)
		next, _ := slices.BinarySearchFunc(numbers, c.End.after(), Number.Compare)
		kept := next - first
		if kept >= c.count {
			continue
		}
		f := Finding{Kind: Missing, Shard: c.shard, Range: c.Range.String(), What: fmt.Sprintf("this range has %d malformed records, but only %d of them are stored below %s%s", c.count, kept, reserved, "malformed/")}
		if c.key != "" {
			f.Keys = []string{c.key}
		}
		v.addFinding(f)
	}
	return nil
}
