package doctorcmd

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pawlhq/pawl/bucket/s3bucket"
	"github.com/pawlhq/pawl/cmd/pawl/config"
)

func TestJudgeCoverage(t *testing.T) {
	const created, removed = "s3:ObjectCreated:*", "s3:ObjectRemoved:*"
	pictures := config.Match{Bucket: "b", Prefix: "in/", Suffix: []string{".jpg", ".png"}}
	notify := func(prefix, suffix string, events ...string) s3bucket.Notification {
		return s3bucket.Notification{To: "q", Events: events, Prefix: prefix, Suffix: suffix}
	}
	for _, tc := range []struct {
		name             string
		match            config.Match
		notifications    []s3bucket.Notification
		created, removed level
	}{
		{"nothing", pictures, nil, levelNone, levelNone},
		{"everything", pictures, []s3bucket.Notification{notify("", "", created, removed)}, levelFull, levelFull},
		{"the prefix", pictures, []s3bucket.Notification{notify("in/", "", created, removed)}, levelFull, levelFull},
		{"half the prefix", pictures, []s3bucket.Notification{notify("in/2026/", "", created)}, levelPartial, levelNone},
		{"another prefix", pictures, []s3bucket.Notification{notify("out/", "", created, removed)}, levelNone, levelNone},
		{"both suffixes", pictures, []s3bucket.Notification{notify("", ".jpg", created), notify("in/", "png", created)}, levelFull, levelNone},
		{"one suffix", pictures, []s3bucket.Notification{notify("", ".jpg", created, removed)}, levelPartial, levelPartial},
		{"a longer suffix", pictures, []s3bucket.Notification{notify("", "x.jpg", created)}, levelPartial, levelNone},
		{"another suffix", pictures, []s3bucket.Notification{notify("in/", ".txt", created, removed)}, levelNone, levelNone},
		{"one suffix, all wanted", config.Match{Bucket: "b"}, []s3bucket.Notification{notify("", ".jpg", created, removed)}, levelPartial, levelPartial},
		{"some kinds", pictures, []s3bucket.Notification{notify("", "", "s3:ObjectCreated:Put", "s3:ObjectRemoved:Delete")}, levelPartial, levelPartial},
		{"all kinds, one by one", pictures, []s3bucket.Notification{
			notify("", "", "s3:ObjectCreated:Put", "s3:ObjectCreated:Post"), notify("", "", "s3:ObjectCreated:Copy", "s3:ObjectRemoved:Delete"),
			notify("in/", "", "s3:ObjectCreated:CompleteMultipartUpload", "s3:ObjectRemoved:DeleteMarkerCreated"),
		}, levelFull, levelFull},
		{"other kinds", pictures, []s3bucket.Notification{notify("", "", "s3:ObjectTagging:*", "s3:ObjectCreate")}, levelNone, levelNone},
	} {
		got := judgeCoverage(tc.notifications, config.Pipeline{Name: "p", Match: tc.match})
		if got.Created != tc.created || got.Removed != tc.removed {
			t.Errorf("%s: created %s, removed %s, want %s and %s", tc.name, got.Created, got.Removed, tc.created, tc.removed)
		}
		silent := tc.created == levelNone && tc.removed == levelNone
		if (got.To == nil) != silent || (got.Detail == "") != (tc.created == levelFull && tc.removed == levelFull) {
			t.Errorf("%s: %+v", tc.name, got)
		}
		if uncovered([]coverage{got}) != (tc.created == levelNone || tc.removed == levelNone) {
			t.Errorf("%s: uncovered is wrong", tc.name)
		}
	}
	got := judgeCoverage([]s3bucket.Notification{notify("in/", ".jpg", created), notify("in/", "", removed)}, config.Pipeline{Name: "p", Match: pictures})
	want := coverage{
		Pipeline: "p", Created: levelPartial, Removed: levelFull, To: []string{"q"},
		Detail: "missing for some or all keys: s3:ObjectCreated:Put, s3:ObjectCreated:Post, s3:ObjectCreated:Copy, s3:ObjectCreated:CompleteMultipartUpload",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
