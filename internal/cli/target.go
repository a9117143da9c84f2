package cli

import (
	"context"
	"strconv"
	"strings"

	"github.com/pawlhq/pawl/event"
	"github.com/pawlhq/pawl/ledger"
)

// versionQuery stands before a version id in what event.Object prints, and
// nowhere else in it.
const versionQuery = "?versionId="

// readings returns the objects that an argument may mean, the likeliest first.
//
// A key may hold anything, so what ls prints is quoted where it has to be; a
// shell takes the quotes away again; and a key that a person types may look
// like either. The ledger decides between them.
func readings(arg string) ([]event.Object, error) {
	var all []event.Object
	if inner, ok := strings.CutPrefix(arg, `"`); ok && strings.HasSuffix(inner, `"`) {
		all = appendPrinted(all, strings.TrimSuffix(inner, `"`))
	} else {
		if strings.Contains(arg, versionQuery) {
			all = appendPrinted(all, arg)
		}
		all = appendObject(all, arg, "")
		if strings.Contains(arg, `\`) {
			all = appendPrinted(all, arg)
		}
	}
	if len(all) == 0 {
		return nil, usage("%s is not an object: want s3://bucket/key", event.Quote(arg))
	}
	return all, nil
}

// appendPrinted reads what event.Object prints, without its quotes.
func appendPrinted(all []event.Object, text string) []event.Object {
	address, version, _ := strings.Cut(text, versionQuery)
	address, err := strconv.Unquote(`"` + address + `"`)
	if err != nil {
		return all
	}
	if version, err = strconv.Unquote(`"` + version + `"`); err != nil {
		return all
	}
	return appendObject(all, address, version)
}

func appendObject(all []event.Object, address, version string) []event.Object {
	rest, scheme := strings.CutPrefix(address, "s3://")
	bucket, key, _ := strings.Cut(rest, "/")
	if !scheme || bucket == "" || key == "" {
		return all
	}
	return append(all, event.Object{Bucket: bucket, Key: key, VersionID: version})
}

// find returns the rows of the object that an argument means, and that object.
// Where the ledger has no row, the object is the likeliest reading.
func (v *view) find(ctx context.Context, arg string) (event.Object, []ledger.Row, error) {
	all, err := readings(arg)
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

// rowsOf returns the rows of an object in the pipelines named: of all its
// versions, unless the object names one.
func (v *view) rowsOf(ctx context.Context, names []string, o event.Object) ([]ledger.Row, error) {
	var rows []ledger.Row
	for _, name := range names {
		for row, err := range v.Scan(ctx, ledger.Range{Pipeline: name, Bucket: o.Bucket, Prefix: o.Key}) {
			if err != nil {
				return nil, err
			}
			if row.Key != o.Key {
				break // those of the key itself come first
			}
			if row.Key == o.Key && (o.VersionID == "" || o.VersionID == row.VersionID) {
				rows = append(rows, row)
			}
		}
	}
	return rows, nil
}

// shellQuote quotes an object for a POSIX shell, so that it can be pasted.
func shellQuote(o event.Object) string {
	s := o.String()
	raw := "s3://" + o.Bucket + "/" + o.Key
	if o.VersionID == "" && printable(raw) && !strings.Contains(raw, versionQuery) {
		s = raw
	}
	return shellWord(s)
}

// shellWord quotes a text for a POSIX shell where it has to be.
func shellWord(s string) string {
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
