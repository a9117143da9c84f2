package pipelinecmd

import (
	"log/slog"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/pawlhq/pawl"
	"github.com/pawlhq/pawl/cmd/pawl/app"
	"github.com/pawlhq/pawl/cmd/pawl/parts"
)

func TestPipelines(t *testing.T) {
	c, err := parts.Table.Parse("pawl.yaml", []byte(`
objects: {eventually_consistent: true}
pipelines:
  - {name: a, match: {bucket: in, prefix: p/, suffix: [.jpg, .png]}, image: {to: s3://out/a/, suffix: .png, format: png}}
  - {name: b, match: {bucket: in}, order: event, copy: {to: s3://out/b/}}
  - {name: c, match: {bucket: in}, identity: version, exec: {command: [cat], to: s3://out, suffix: .txt}}
  - {name: d, match: {bucket: in}, exec: {command: [cat]}}
  - {name: e, match: {bucket: in}, http: {url: "http://127.0.0.1/x"}}
`), nil)
	if err != nil {
		t.Fatal(err)
	}
	m := &app.Runtime{Config: c, Log: slog.New(slog.DiscardHandler)}
	got, err := m.Pipelines(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	want := []pawl.Pipeline{
		{Name: "a", Match: pawl.Match{Bucket: "in", Prefix: "p/", Suffix: []string{".jpg", ".png"}}, To: &pawl.Output{Bucket: "out", Prefix: "a/", Suffix: ".png"}},
		{Name: "b", Order: pawl.EventOrder, To: &pawl.Output{Bucket: "out", Prefix: "b/"}},
		{Name: "c", EachVersion: true, To: &pawl.Output{Bucket: "out", Suffix: ".txt"}},
		{Name: "d"},
		{Name: "e"},
	}
	for i := range want {
		want[i].Match.Bucket, want[i].EventuallyConsistent = "in", true
		if got[i].Handler == nil {
			t.Errorf("%s has no handler", got[i].Name)
		}
	}
	if diff := cmp.Diff(want, got, cmpopts.IgnoreFields(pawl.Pipeline{}, "Handler")); diff != "" {
		t.Error(diff)
	}
}

func TestBucketUsers(t *testing.T) {
	got := bucketUsers([]pawl.Pipeline{
		{Name: "a", Match: pawl.Match{Bucket: "in"}, To: &pawl.Output{Bucket: "out"}},
		{Name: "b", Match: pawl.Match{Bucket: "unread"}, Order: pawl.EventOrder, To: &pawl.Output{Bucket: "out"}},
		{Name: "c", Match: pawl.Match{Bucket: "out"}},
	})
	want := []bucketUser{{"in", "a", "reads"}, {"out", "a", "writes"}}
	if diff := cmp.Diff(want, got, cmp.AllowUnexported(bucketUser{})); diff != "" {
		t.Error(diff)
	}
}
