package audit

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"strings"

	"github.com/pawlhq/pawl/bucket"
	"github.com/pawlhq/pawl/event"
	"github.com/pawlhq/pawl/ledger"
)

// ErrListing is returned for a listing whose keys are out of order or repeated. The audit keeps
// its repairs of earlier chunks.
var ErrListing = errors.New("inconsistent listing")

type merge struct {
	nextInfo func() (bucket.Info, error, bool)
	nextRow  func() (ledger.Row, error, bool)
	info     *bucket.Info // nil at the end
	row      *ledger.Row  // nil at the end
	refused  error        // the store cannot list the object of info
	started  bool
	stop     func()

	// Valid until the next call of next.
	infos      []bucket.Info
	rows       []ledger.Row
	unlistable error
}

func (p *Pass) merge(ctx context.Context, prefix, after string) *merge {
	m := &merge{}
	var stopInfos, stopRows func()
	m.nextInfo, stopInfos = iter.Pull2(p.objects(ctx, prefix, after))
	m.nextRow, stopRows = iter.Pull2(p.rows(ctx, prefix, after))
	m.stop = func() {
		stopInfos()
		stopRows()
	}
	return m
}

func (m *merge) next() (key string, ok bool, err error) {
	if !m.started {
		m.started = true
		if err := errors.Join(m.readInfo(), m.readRow()); err != nil {
			return "", false, err
		}
	}
	switch {
	case m.info == nil && m.row == nil:
		return "", false, nil
	case m.row == nil, m.info != nil && m.info.Key <= m.row.Key:
		key = m.info.Key
	default:
		key = m.row.Key
	}
	m.infos, m.rows, m.unlistable = m.infos[:0], m.rows[:0], nil
	for m.info != nil && m.info.Key == key && err == nil {
		m.infos = append(m.infos, *m.info)
		m.unlistable = cmp.Or(m.unlistable, m.refused)
		err = m.readInfo()
	}
	for m.row != nil && m.row.Key == key && err == nil {
		m.rows = append(m.rows, *m.row)
		err = m.readRow()
	}
	return key, true, err
}

func (m *merge) readInfo() error {
	info, err, ok := m.nextInfo()
	m.info, m.refused = &info, nil
	if info.Unlistable(err) {
		m.refused, err = err, nil
	}
	if !ok {
		m.info = nil
	}
	return err
}

func (m *merge) readRow() error {
	row, err, ok := m.nextRow()
	m.row = &row
	if !ok {
		m.row = nil
	}
	return err
}

func (p *Pass) objects(ctx context.Context, prefix, after string) iter.Seq2[bucket.Info, error] {
	listing := p.Listing.List(ctx, p.Pipeline.Bucket, prefix, after)
	return func(yield func(bucket.Info, error) bool) {
		last, version := after, ""
		for info, err := range listing {
			again := info.Key == last && (info.VersionID == version || !p.Pipeline.EachVersion)
			more := err == nil || info.Unlistable(err)
			if more && (info.Key < last || again || !strings.HasPrefix(info.Key, prefix)) {
				err, more = p.orderError(info.Key, last, prefix), false
			}
			if !yield(info, err) || !more {
				return
			}
			last, version = info.Key, info.VersionID
		}
		if err := ctx.Err(); err != nil {
			yield(bucket.Info{}, context.Cause(ctx)) // the listing is incomplete
		}
	}
}

func (p *Pass) orderError(key, last, prefix string) error {
	where := event.Object{Bucket: p.Pipeline.Bucket, Key: prefix}
	return fmt.Errorf("list %s: %w: key %s follows %s, but keys must be in byte order: no removal was scheduled; check for a cache or proxy in front of the store",
		where, ErrListing, event.Quote(key), event.Quote(last))
}

func (p *Pass) rows(ctx context.Context, prefix, after string) iter.Seq2[ledger.Row, error] {
	r := ledger.Range{Pipeline: p.Pipeline.Name, Bucket: p.Pipeline.Bucket, Prefix: prefix}
	if after != "" {
		r.After = ledger.RowKey{Pipeline: r.Pipeline, Bucket: r.Bucket, Key: after}
	}
	scan := p.Ledger.Scan(ctx, r)
	return func(yield func(ledger.Row, error) bool) {
		for row, err := range scan {
			if err == nil && (row.Key == after || !p.Pipeline.Match(row.Object())) {
				continue // another version of the key after, or an object that no longer matches
			}
			if !yield(row, err) || err != nil {
				return
			}
		}
	}
}
