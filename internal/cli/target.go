package cli

import (
	"context"
	"strconv"
	"strings"

	"github.com/pawlhq/pawl/event"
	"github.com/pawlhq/pawl/ledger"
)

// readings returns the objects that an argument may mean, the likeliest first.
//
// A key may hold anything. What ls prints is quoted where it has to be, a shell
// takes quotes away, and "?versionId=" may be part of a key: so more than one
// reading is possible, and the ledger decides.
func readings(arg string) ([]event.Object, error) {
	texts := []string{arg}
	if s, err := strconv.Unquote(arg); err == nil && strings.HasPrefix(arg, `"`) {
		texts = []string{s}
	} else if s, err := strconv.Unquote(`"` + arg + `"`); err == nil && s != arg {
		texts = append(texts, s) // the shell took the quotes
	}
	var all []event.Object
	for _, text := range texts {
		bucket, key, ok := strings.Cut(strings.TrimPrefix(text, "s3://"), "/")
		if !strings.HasPrefix(text, "s3://") || !ok || bucket == "" || key == "" {
			return nil, usage("%s is not an object: want s3://bucket/key", event.Quote(arg))
		}
		all = append(all, event.Object{Bucket: bucket, Key: key})
		if i := strings.LastIndex(key, "?versionId="); i > 0 {
			all = append(all, event.Object{Bucket: bucket, Key: key[:i], VersionID: key[i+len("?versionId="):]})
		}
	}
	return all, nil
}

// find returns the rows of the object that an argument means, and that object.
// Where the ledger has no row, the object is the likeliest reading.
func (v *view) find(ctx context.Context, arg string) (event.Object, []ledger.Row, error) {
	all, err := readings(arg)
	if err != nil {
		return event.Object{}, nil, err
	}
	names, err := v.pipelines(ctx)
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

// rowsOf returns the rows of an object in the pipelines named: of all its
// versions, unless the object names one.
func (v *view) rowsOf(ctx context.Context, names []string, o event.Object) ([]ledger.Row, error) {
	var rows []ledger.Row
	for _, name := range names {
		// Rows come in key order, so those of the key itself come first.
		for row, err := range v.Scan(ctx, ledger.Range{Pipeline: name, Bucket: o.Bucket, Prefix: o.Key}) {
			if err != nil {
				return nil, err
			}
			if row.Key != o.Key {
				break
			}
			if o.VersionID == "" || o.VersionID == row.VersionID {
				rows = append(rows, row)
			}
		}
	}
	return rows, nil
}

// pipelines names the pipelines that the ledger has rows of, which may be others
// than the configuration's.
func (v *view) pipelines(ctx context.Context) ([]string, error) {
	var names []string
	for last := (ledger.RowKey{}); ; {
		name, err := v.pipelineAfter(ctx, last)
		if err != nil || name == "" {
			return names, err
		}
		names = append(names, name)
		last = ledger.RowKey{Pipeline: name, Bucket: "\xff"} // no bucket's name is larger
	}
}

// pipelineAfter names the pipeline of the first row after a key, or returns "".
func (v *view) pipelineAfter(ctx context.Context, key ledger.RowKey) (string, error) {
	for row, err := range v.Scan(ctx, ledger.Range{After: key}) {
		return row.Pipeline, err
	}
	return "", nil
}

// shellQuote quotes an object for a POSIX shell, so that it can be pasted.
func shellQuote(o event.Object) string {
	s := o.String()
	if raw := "s3://" + o.Bucket + "/" + o.Key; o.VersionID == "" && printable(raw) {
		s = raw
	}
	if strings.Trim(s, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789:/._-+=@%,") == "" {
		return s
	}
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}

// printable reports that a terminal can show s as it is, but for spaces and
// quotes.
func printable(s string) bool {
	for _, r := range s {
		if r == '\uFFFD' || r == '\\' || !strconv.IsPrint(r) {
			return false
		}
	}
	return true
}
