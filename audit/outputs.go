package audit

import (
	"context"
	"errors"

	"github.com/pawlhq/pawl/bucket"
	"github.com/pawlhq/pawl/event"
	"github.com/pawlhq/pawl/ledger"
)

const (
	noOutput = "no output"
	noInput  = "output without object"
)

// walkInputs raises the rows of existing objects whose output is missing.
func (p *Pass) walkInputs(ctx context.Context, prefix string, s *Span, commit func(*Counts) error) error {
	w := walk{Pass: p}
	var rows []ledger.Row
	flush := func() error {
		if err := w.missingOutputs(ctx, rows); err != nil {
			return err
		}
		rows = rows[:0]
		return w.commit(commit)
	}
	for row, err := range p.rows(ctx, prefix, s.Done()) {
		if err != nil {
			return err
		}
		if len(rows) >= chunk && row.Key != rows[len(rows)-1].Key {
			if err := flush(); err != nil {
				return err
			}
		}
		if !s.advance(row.Key) {
			break
		}
		if p.settledLongEnough(&row, event.Created) {
			rows = append(rows, row)
		}
	}
	return flush()
}

func (p *Pass) settledLongEnough(row *ledger.Row, kind event.Kind) bool {
	return row.Settled() && !row.Dead && !row.Held() && row.Have.Kind == kind && row.UpdatedAt.Before(p.Now().Add(-p.SettleWindow))
}

func (w *walk) missingOutputs(ctx context.Context, rows []ledger.Row) error {
	there, err := w.listedOutputs(ctx, rows)
	if err != nil {
		return err
	}
	var open []candidate
	for i := range rows {
		if !there[w.Pipeline.Output.Of(rows[i].RowKey).Key] {
			open = append(open, candidate{key: rows[i].RowKey})
		}
	}
	return w.raiseOutputFindings(ctx, open, noOutput)
}

// maxListedOutputs bounds the listing for one chunk of rows. Outputs can be far apart, because a
// suffix changes their order.
const maxListedOutputs = 10 * chunk

// listedOutputs returns the keys of listed outputs. It may miss outputs beyond maxListedOutputs.
func (w *walk) listedOutputs(ctx context.Context, rows []ledger.Row) (map[string]bool, error) {
	shown := make(map[string]bool, len(rows))
	if len(rows) == 0 {
		return shown, nil
	}
	first, last := "", ""
	for i := range rows {
		key := w.Pipeline.Output.Of(rows[i].RowKey).Key
		if first == "" || key < first {
			first = key
		}
		last = max(last, key)
	}
	out, n := w.Pipeline.Output, 0
	for info, err := range w.Objects.List(ctx, out.Bucket, out.Prefix, keyBefore(first)) {
		if err != nil && !info.Unlistable(err) {
			return nil, err
		}
		if shown[info.Key] = true; info.Key >= last || n == maxListedOutputs {
			break // raiseOutputFindings sends a HEAD request for each of the others
		}
		n++
	}
	return shown, nil
}

// keyBefore returns a smaller key, with few keys between the two.
func keyBefore(key string) string {
	if key == "" {
		return ""
	}
	return key[:wholeRunes(key, len(key)-1)]
}

// walkOutputs finds outputs whose object is gone. They count as removals, so the first pass only
// counts them.
func (p *Pass) walkOutputs(ctx context.Context, prefix string, s *Span, commit func(*Counts) error) error {
	w := walk{Pass: p}
	var outputs []candidate
	flush := func() error {
		if err := w.orphanOutputs(ctx, outputs); err != nil {
			return err
		}
		outputs = outputs[:0]
		return w.commit(commit)
	}
	young := p.Now().Add(-p.SettleWindow)
	for info, err := range p.Objects.List(ctx, p.Pipeline.Output.Bucket, prefix, s.Done()) {
		if err != nil && !info.Unlistable(err) {
			return err
		}
		if !s.advance(info.Key) {
			break
		}
		key, ours := p.Pipeline.Output.Source(info.Key)
		switch {
		case !ours:
			w.counts.Foreign++
		case err != nil:
			w.recordUnlistable(event.Object{Bucket: p.Pipeline.Output.Bucket, Key: info.Key}, err)
		case info.ModTime.Before(young):
			outputs = append(outputs, candidate{key: key})
		}
		if len(outputs) == chunk {
			if err := flush(); err != nil {
				return err
			}
		}
	}
	return flush()
}

func (w *walk) orphanOutputs(ctx context.Context, outputs []candidate) error {
	rows, err := w.load(ctx, outputs)
	if err != nil {
		return err
	}
	var open []candidate
	for i := range rows {
		if rows[i].Nonce.IsZero() || w.settledLongEnough(&rows[i], event.Removed) {
			open = append(open, outputs[i])
		}
	}
	return w.raiseOutputFindings(ctx, open, noInput)
}

const (
	metaPipeline = "pawl-pipeline"
	metaObject   = "pawl-object"
)

// owns reports whether a worker wrote the output for the row's object. A copy of an output names
// another object in its metadata. Outputs of older versions of Pawl name no object.
func owns(row *ledger.Row, output *bucket.Info) bool {
	object, named := output.Metadata[metaObject]
	return output.Metadata[metaPipeline] == row.Pipeline &&
		(object == row.Digest() || !named && !row.Nonce.IsZero())
}

func (w *walk) raiseOutputFindings(ctx context.Context, open []candidate, what string) error {
	rows, err := w.load(ctx, open)
	if err != nil {
		return err
	}
	outputs, objects := make([]bucket.Info, len(open)), make([]headResult, len(open))
	w.Each(len(open), func(i int) {
		objects[i] = w.head(ctx, open[i].key.Object())
		info, err := w.Objects.Head(ctx, w.Pipeline.Output.Of(open[i].key))
		if outputs[i] = info; err != nil && !errors.Is(err, bucket.ErrNotFound) && objects[i].err == nil {
			objects[i].err = err
		}
	})
	w.counts.Inspected += 2 * int64(len(open))
	var changes []ledger.Change
	for i := range open {
		o := &objects[i]
		if o.err != nil {
			return o.err
		}
		if !w.confirms(&rows[i], o, &outputs[i], what) {
			continue
		}
		kind := event.Removed
		if o.Exists {
			kind = event.Created
		}
		next := rows[i].Raise(kind, o.Identity, w.Now())
		next.Nonce = w.Nonce()
		changes = append(changes, ledger.Change{Key: next.RowKey, Expect: rows[i].Nonce, Row: &next})
	}
	return w.writeOutputs(ctx, changes, what)
}

func (w *walk) confirms(row *ledger.Row, object *headResult, output *bucket.Info, what string) bool {
	switch {
	case object.inaccessible:
		if w.Brake == nil { // the first pass counts it too
			w.counts.Inaccessible++
		}
		return false
	case what == noOutput:
		return output.Key == "" && object.Exists && w.settledLongEnough(row, event.Created)
	case output.Key == "" || object.Exists || !row.Nonce.IsZero() && !w.settledLongEnough(row, event.Removed):
		return false
	case !owns(row, output):
		w.counts.Foreign++
		return false
	case w.Brake == nil:
		w.counts.Removable++
		return false
	}
	return true
}

// writeOutputs skips rows that changed meanwhile, because a worker is processing them.
func (w *walk) writeOutputs(ctx context.Context, changes []ledger.Change, what string) error {
	if len(changes) == 0 || !w.mayRaise(len(changes)) {
		return nil
	}
	var out []ledger.Outcome
	var err error
	if !w.DryRun {
		out, err = w.Ledger.Swap(ctx, changes)
	}
	for i := range changes {
		if !w.DryRun && !out[i].Applied {
			w.notRaised(1)
			continue
		}
		if what == noOutput {
			w.counts.NoOutput++
		} else {
			w.counts.NoInput++
		}
		if !w.DryRun {
			w.counts.Repaired++
		}
		if w.Found != nil {
			w.Found(changes[i].Key, what, !w.DryRun)
		}
	}
	return err
}
