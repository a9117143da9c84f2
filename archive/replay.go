package archive

import (
	"context"
	"errors"
	"fmt"
)

// replay stores the intent of the previous owner. It stores the same objects with the same keys and
// in the same format, even if this worker has another configuration.
func (s *shard) replay(ctx context.Context) error {
	objects := s.progress.Intent.Objects
	for i := range objects {
		if !objects[i].isGap() && !s.Codec.Knows(objects[i].Format) {
			return fmt.Errorf("%w: shard %s has an announced object in format %q, which this version of Pawl does not support: run the version that announced it",
				ErrBroken, s.ID, objects[i].Format)
		}
	}
	for i := range objects {
		ok, err := s.replayObject(ctx, i)
		if err != nil {
			return err
		}
		if !ok {
			return s.abandonFrom(ctx, i)
		}
	}
	return s.write(ctx, s.progress.Commit())
}

// abandonFrom drops object from of the intent, whose key has a void, and all later objects. A later
// object may already be stored if an operator deleted the stored object from.
func (s *shard) abandonFrom(ctx context.Context, from int) error {
	behind := false
	for _, o := range s.progress.Intent.Objects[from+1:] {
		stored, err := s.isStored(ctx, &o)
		if err != nil && !errors.Is(err, errVoid) {
			return err
		}
		behind = behind || stored
	}
	return s.write(ctx, s.progress.Abandon(from, behind))
}

// replayObject stores object i of the intent again. If its records have expired, replayObject
// voids the key and returns false.
func (s *shard) replayObject(ctx context.Context, i int) (bool, error) {
	o := s.progress.Intent.Objects[i]
	stored, err := s.isStored(ctx, &o)
	switch {
	case errors.Is(err, errVoid):
		return false, nil
	case err != nil || stored:
		return stored, err
	}
	records, whole, err := s.rereadRecords(ctx, i)
	if err != nil {
		return false, err
	}
	if !whole {
		return s.void(ctx, &o)
	}
	if got := s.digest(&o, records); got != o.Digest {
		return false, fmt.Errorf("%w: the records of %s differ from those that were announced", ErrBroken, s.object(o.Key))
	}
	body, err := s.encodeObject(&o, records)
	if err != nil {
		return false, err
	}
	signed, err := s.renewSignature(ctx)
	if err != nil {
		return false, err
	}
	_, _, err = s.send(ctx, &encodedObject{Planned: o, body: body}, signed)
	if errors.Is(err, errVoid) {
		return false, nil
	}
	return err == nil, err
}

// rereadRecords reads the records of object i of the intent again, and reports whether all of these
// records still exist. It reads until it has all of them, or the stream returns a record after the
// object or ends, because empty pages do not prove that records are missing.
func (s *shard) rereadRecords(ctx context.Context, i int) (records []Record, whole bool, err error) {
	o := &s.progress.Intent.Objects[i]
	if o.isGap() {
		return nil, true, nil
	}
	t := s.tailAt(Progress{Committed: o.Start, Anchor: o.First})
	for len(records) < o.Count {
		f, err := t.next(ctx)
		if errors.Is(err, ErrUnavailable) && ctx.Err() == nil {
			err = s.pace(ctx, 4, err)
		}
		if err != nil {
			return nil, false, err
		}
		for _, e := range f.records {
			switch {
			case o.End.less(e.Number):
				f.end = true
			case !o.Start.less(e.Number):
			case len(e.UserRecords) > 0:
				records = append(records, e)
			}
		}
		if f.end {
			break
		}
	}
	return records, len(records) == o.Count, nil
}
