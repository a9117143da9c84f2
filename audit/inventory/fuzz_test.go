package inventory

import (
	"bytes"
	"encoding/csv"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/pawlhq/pawl/audit/inventory/inventorytest"
)

func FuzzCSV(f *testing.F) {
	f.Add(inventorytest.CSVText([]inventorytest.Row{object("a b+c/ä", 7), {Bucket: "photos", Key: "gone", Marker: true, Modified: created}}))
	for _, row := range []string{badRow, "", "\"", "\r\n\r\n", strings.Repeat(",", 9), strings.Replace(badRow, `"a"`, "%zz", 1), badRow + "\n" + badRow + "x"} {
		f.Add(row)
	}
	m := &manifest{SourceBucket: "photos", created: created}
	m.columns, _ = columnsOf(formatCSV, versionsCSV)
	f.Fuzz(func(t *testing.T, text string) {
		first, err := entries(m, text)
		for _, e := range first {
			if e.key == "" || len(e.key) > maxKey || e.etag == "" && err == nil || e.size < 0 || e.modified > created.Add(maxScan).UnixMilli() {
				t.Fatalf("%q yields %+v", text, e)
			}
		}
		again, err := entries(m, rewritten(t, first))
		if err != nil || !slices.Equal(first, again) {
			t.Fatalf("%q yields %+v, and written again %+v, %v", text, first, again, err)
		}
	})
}

func entries(m *manifest, text string) (all []entry, err error) {
	err = m.csvRows(strings.NewReader(text), func(r *row) error {
		e, current, err := m.entry(r)
		if current && err == nil {
			all = append(all, e)
		}
		return err
	})
	return all, err
}

func rewritten(t *testing.T, all []entry) string {
	t.Helper()
	var b bytes.Buffer
	w := csv.NewWriter(&b)
	for _, e := range all {
		at := time.UnixMilli(e.modified).UTC().Format(time.RFC3339Nano)
		if err := w.Write([]string{"photos", url.QueryEscape(e.key), "", "true", "false", strconv.FormatInt(e.size, 10), at, `"` + e.etag + `"`, "", ""}); err != nil {
			t.Fatal(err)
		}
	}
	w.Flush()
	return b.String()
}

func FuzzManifest(f *testing.F) {
	for _, format := range formats {
		rep := inventorytest.New(f, format, "photos", created, []inventorytest.Row{object("a", 1)}, nil)
		for _, edit := range []func(map[string]any){func(map[string]any) {}, set("version", ""), set("files", nil), set("fileSchema", "Bucket, Key"), editPart("key", "")} {
			f.Add(rep.Files(f, edit)[rep.ManifestKey()])
		}
	}
	f.Add([]byte(`{"sourceBucket":"a","sourceBucket":"b"}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		m, err := parseManifest(text)
		if err != nil {
			if strings.ContainsAny(err.Error(), "\x1b\x00\n") {
				t.Errorf("%q drives a terminal", err)
			}
			return
		}
		if m.SourceBucket == "" || m.created.Unix() < 0 || m.Parts == nil || m.checkParts() != nil || checkColumns(m.columns) != nil {
			t.Errorf("%q is accepted: %+v", text, m)
		}
		at := m.columnIndexes()
		if min(at.bucket, at.key, at.size, at.modified, at.etag) < 0 || at.latest < 0 != (at.marker < 0) {
			t.Errorf("%q is accepted with the columns %q", text, m.columns)
		}
	})
}
