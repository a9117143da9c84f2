package archive

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"

	"github.com/pawlhq/pawl/bucket"
)

const readTries = 3

func (v *verifier) checkContent(ctx context.Context, n Name, key string) error {
	info, body, err := v.fetch(ctx, key)
	if err != nil {
		return v.unreadable(ctx, n.Shard, key, err)
	}
	if info.Metadata[metaArchive] != v.claim.ID {
		v.addFinding(Finding{Kind: Foreign, Shard: n.Shard, Keys: []string{key}, What: "the metadata does not name this archive"})
		return nil
	}
	if count, err := strconv.Atoi(info.Metadata[metaMalformed]); err == nil {
		v.counted = append(v.counted, malformedCount{n.Shard, n.Range, count, key})
	}
	o := Planned{Range: n.Range, Format: n.Format}
	var records []Record
	if o.isGap() {
		v.countGap(n, key, kindOfGap(body))
	} else {
		records, err = v.Codec.Decode(n.Format, n.Shard, body)
	}
	v.report.Records += len(records)
	outside := slices.ContainsFunc(records, func(e Record) bool { return !n.Contains(e.Number) })
	if err != nil || outside || digestOf(n.Shard, &o, records) != info.Metadata[metaDigest] {
		v.addFinding(Finding{Kind: Damaged, Shard: n.Shard, Range: n.Range.String(), Keys: []string{key}, What: "the content differs from the records that were stored in this object"})
	}
	return nil
}

func (v *verifier) fetch(ctx context.Context, key string) (info bucket.Info, body []byte, err error) {
	for try := 1; ; try++ {
		info, body, err = v.get(ctx, key)
		if err == nil || try == readTries || !errors.Is(err, bucket.ErrUnavailable) {
			return info, body, err
		}
		if err := v.pace(ctx, try, err); err != nil {
			return info, nil, err
		}
	}
}

func (a *Archive) get(ctx context.Context, key string) (bucket.Info, []byte, error) {
	info, r, err := a.Store.Get(ctx, a.object(key))
	if err != nil {
		return info, nil, err
	}
	defer r.Close()
	body, err := io.ReadAll(r)
	if err != nil {
		err = fmt.Errorf("%w: reading %s: %w", bucket.ErrUnavailable, a.object(key), err)
	}
	return info, body, err
}

// unreadable adds a finding, and returns nil so that Verify continues.
func (v *verifier) unreadable(ctx context.Context, shard, key string, err error) error {
	if ctx.Err() != nil {
		return err
	}
	v.addFinding(Finding{Kind: Unreadable, Shard: shard, Keys: []string{key}, What: "the object cannot be read: " + err.Error()})
	return nil
}

func (v *verifier) countGap(n Name, key string, kind gapKind) {
	v.report.Gaps++
	switch kind {
	case gapExpired:
		v.report.Expired++
		v.addNote(Finding{Kind: Expired, Shard: n.Shard, Range: n.Range.String(), Keys: []string{key}, What: gapReasons[kind]})
	case gapPossible:
		v.report.PossiblyExpired++
	case gapMalformed:
	}
}

func (v *verifier) addNote(f Finding) { v.report.Notes = append(v.report.Notes, f) }
