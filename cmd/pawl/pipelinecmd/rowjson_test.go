package pipelinecmd

import (
	"reflect"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/pawlhq/pawl/cmd/pawl/app"
	"github.com/pawlhq/pawl/ledger"
)

func TestRowFieldsAreDocumented(t *testing.T) {
	help := NewLsCommand(&app.App{}).Long
	var check func(reflect.Type)
	check = func(typ reflect.Type) {
		for f := range typ.Fields() {
			name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
			if !regexp.MustCompile(`\b` + name + `\b`).MatchString(help) {
				t.Errorf("%s is not in the help of ls", name)
			}
			if f.Type.Kind() == reflect.Pointer {
				check(f.Type.Elem())
			}
		}
	}
	check(reflect.TypeFor[rowJSON]())
}

func TestKeyJSON(t *testing.T) {
	text, base := app.KeyJSON("é")
	if text != "é" || base != "" {
		t.Errorf("got %q, %q", text, base)
	}
	text, base = app.KeyJSON("a\xffb")
	if text != "a\uFFFDb" || base != "Yf9i" {
		t.Errorf("got %q, %q", text, base)
	}
}

func TestRowsOf(t *testing.T) {
	s := deadRows(t, 12) // k00000 … k00011
	v := &ledgerReader{Store: s}
	for i, key := range []ledger.RowKey{
		{Pipeline: "q", Bucket: "b", Key: "k0000"},
		{Pipeline: "q", Bucket: "b", Key: "k00001", VersionID: "v1"},
		{Pipeline: "q", Bucket: "b", Key: "k00001", VersionID: "v2"},
		{Pipeline: "z", Bucket: "c", Key: "k00001"},
	} {
		row := ledger.Row{RowKey: key, Nonce: ledger.Nonce{byte(i + 1)}, CreatedAt: time.Now(), UpdatedAt: time.Now()}
		if _, err := s.Swap(t.Context(), []ledger.Change{{Key: key, Row: &row}}); err != nil {
			t.Fatal(err)
		}
	}
	for arg, want := range map[string]int{
		"s3://b/k00001": 3, "s3://b/k00001?versionId=v2": 1, "s3://b/k0000": 1, "s3://c/k00001": 1, "s3://b/k": 0,
	} {
		_, rows, err := v.find(t.Context(), arg)
		if err != nil || len(rows) != want {
			t.Errorf("%s: got %d rows (%v), want %d", arg, len(rows), err, want)
		}
	}
}
