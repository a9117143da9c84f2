package archive

import (
	"context"
	"errors"
	"fmt"
)

// replay stores the previous owner's intent with the same keys and formats, even if the
// configuration differs.
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

// abandonFrom drops the object with index from, whose key has a void, and all later objects of the
// intent. A later object can already be stored if an operator deleted the stored object from.
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

// replayObject returns false if the key has a void, or if the records have expired and it wrote a
// void.
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

// rereadRecords reports whether all records of object i still exist. It reads until it has all of
// them, finds a later record, or reaches the end, because an empty page proves nothing.
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
