package pipelinecmd

import (
	"context"

	"github.com/pawlhq/pawl/cmd/pawl/app"
	"github.com/pawlhq/pawl/event"
	"github.com/pawlhq/pawl/ledger"
)

// If no candidate has rows, find returns the likeliest.
func (v *ledgerReader) find(ctx context.Context, arg string) (event.Object, []ledger.Row, error) {
	all, err := app.ObjectCandidates(arg)
	if err != nil {
		return event.Object{}, nil, err
	}
	names, err := ledger.Pipelines(ctx, v)
	if err != nil {
		return event.Object{}, nil, err
	}
	for _, o := range all {
		rows, err := v.rowsOf(ctx, names, o)
		if err != nil || len(rows) > 0 {
			return o, rows, err
		}
	}
	return all[0], nil, nil
}

// If the object has no version ID, rowsOf returns the rows of all versions.
func (v *ledgerReader) rowsOf(ctx context.Context, names []string, o event.Object) ([]ledger.Row, error) {
	var rows []ledger.Row
	for _, name := range names {
		for row, err := range v.Scan(ctx, ledger.Range{Pipeline: name, Bucket: o.Bucket, Prefix: o.Key}) {
			if err != nil {
				return nil, err
			}
			if row.Key != o.Key {
				break // the rows of the exact key come first
			}
			if row.Key == o.Key && (o.VersionID == "" || o.VersionID == row.VersionID) {
				rows = append(rows, row)
			}
		}
	}
	return rows, nil
}
