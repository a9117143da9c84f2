package action

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pawlhq/pawl"
	"github.com/pawlhq/pawl/bucket"
	"github.com/pawlhq/pawl/event"
)

func task() *pawl.Task {
	return &pawl.Task{
		Pipeline:       "load",
		Object:         event.Object{Bucket: "exports", Key: "in/a b+c.csv"},
		Kind:           event.Created,
		Info:           bucket.Info{ETag: "abc", Size: 12, VersionID: "v1"},
		Attempt:        2,
		Fence:          1763700000000,
		IdempotencyKey: "0123456789abcdef0123456789abcdef",
	}
}

func TestFactsJSON(t *testing.T) {
	tests := []struct {
		name string
		edit func(*pawl.Task)
		want string
	}{
		{"created", func(*pawl.Task) {}, `{"pipeline":"load","bucket":"exports","key":"in/a b+c.csv","kind":"created","etag":"abc",` +
			`"version_id":"v1","size":12,"fence":1763700000000,"attempt":2,"idempotency_key":"0123456789abcdef0123456789abcdef"}`},
		{"removed", func(t *pawl.Task) { t.Kind, t.Info = event.Removed, bucket.Info{}; t.Object.VersionID = "v2" },
			`{"pipeline":"load","bucket":"exports","key":"in/a b+c.csv","kind":"removed","etag":"",` +
				`"version_id":"v2","size":0,"fence":1763700000000,"attempt":2,"idempotency_key":"0123456789abcdef0123456789abcdef"}`},
		{"key that is not UTF-8", func(t *pawl.Task) { t.Object.Key = "a\xff" }, `{"pipeline":"load","bucket":"exports","key_base64":"Yf8=","kind":"created","etag":"abc",` +
			`"version_id":"v1","size":12,"fence":1763700000000,"attempt":2,"idempotency_key":"0123456789abcdef0123456789abcdef"}`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			task := task()
			tt.edit(task)
			got, err := FactsOf(task).JSON()
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.want, string(got)); diff != "" {
				t.Errorf("JSON (-want +got):\n%s", diff)
			}
		})
	}
}

func TestFactsEnviron(t *testing.T) {
	want := []string{
		"PAWL_PIPELINE=load", "PAWL_BUCKET=exports", "PAWL_KEY=in/a b+c.csv", "PAWL_KIND=created", "PAWL_ETAG=abc",
		"PAWL_VERSION_ID=v1", "PAWL_SIZE=12", "PAWL_FENCE=1763700000000", "PAWL_ATTEMPT=2",
		"PAWL_IDEMPOTENCY_KEY=0123456789abcdef0123456789abcdef",
	}
	if diff := cmp.Diff(want, FactsOf(task()).Environ()); diff != "" {
		t.Errorf("Environ (-want +got):\n%s", diff)
	}
	raw := task()
	raw.Object.Key = "\xff\n=\xfe"
	if got := FactsOf(raw).Environ(); !slices.Contains(got, "PAWL_KEY=\xff\n=\xfe") {
		t.Errorf("a key that is not UTF-8 was changed: %q", got)
	}
}

func TestExcerpt(t *testing.T) {
	for in, want := range map[string]string{
		"":                           "",
		" \n":                        "",
		"plain":                      "plain",
		"\n two\r\n\tlines \n":       "two lines",
		"\x1b[31mred\x00\xff\u202eé": ".[31mred...é",
	} {
		if got := Excerpt([]byte(in)); got != want {
			t.Errorf("Excerpt(%q) = %q, want %q", in, got, want)
		}
	}
}
