package doctorcmd

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pawlhq/pawl/bucket/s3bucket"
	"github.com/pawlhq/pawl/cmd/pawl/config"
)

func TestJudgeNotifications(t *testing.T) {
	const created, removed = "s3:ObjectCreated:*", "s3:ObjectRemoved:*"
	pictures := config.Match{Bucket: "b", Prefix: "in/", Suffix: []string{".jpg", ".png"}}
	notify := func(prefix, suffix string, events ...string) s3bucket.Notification {
		return s3bucket.Notification{To: "q", Events: events, Prefix: prefix, Suffix: suffix}
	}
	for _, tc := range []struct {
		name             string
		match            config.Match
		notifications    []s3bucket.Notification
		created, removed telling
	}{
		{"nothing", pictures, nil, toldNone, toldNone},
		{"everything", pictures, []s3bucket.Notification{notify("", "", created, removed)}, toldAll, toldAll},
		{"the prefix", pictures, []s3bucket.Notification{notify("in/", "", created, removed)}, toldAll, toldAll},
		{"half the prefix", pictures, []s3bucket.Notification{notify("in/2026/", "", created)}, toldPart, toldNone},
		{"another prefix", pictures, []s3bucket.Notification{notify("out/", "", created, removed)}, toldNone, toldNone},
		{"both suffixes", pictures, []s3bucket.Notification{notify("", ".jpg", created), notify("in/", "png", created)}, toldAll, toldNone},
		{"one suffix", pictures, []s3bucket.Notification{notify("", ".jpg", created, removed)}, toldPart, toldPart},
		{"a longer suffix", pictures, []s3bucket.Notification{notify("", "x.jpg", created)}, toldPart, toldNone},
		{"another suffix", pictures, []s3bucket.Notification{notify("in/", ".txt", created, removed)}, toldNone, toldNone},
		{"a suffix, where all are wanted", config.Match{Bucket: "b"}, []s3bucket.Notification{notify("", ".jpg", created, removed)}, toldPart, toldPart},
		{"some kinds", pictures, []s3bucket.Notification{notify("", "", "s3:ObjectCreated:Put", "s3:ObjectRemoved:Delete")}, toldPart, toldPart},
		{"all kinds, one by one", pictures, []s3bucket.Notification{
			notify("", "", "s3:ObjectCreated:Put", "s3:ObjectCreated:Post"), notify("", "", "s3:ObjectCreated:Copy", "s3:ObjectRemoved:Delete"),
			notify("in/", "", "s3:ObjectCreated:CompleteMultipartUpload", "s3:ObjectRemoved:DeleteMarkerCreated"),
		}, toldAll, toldAll},
		{"other kinds", pictures, []s3bucket.Notification{notify("", "", "s3:ObjectTagging:*", "s3:ObjectCreate")}, toldNone, toldNone},
	} {
		got := judgeNotifications(tc.notifications, config.Pipeline{Name: "p", Match: tc.match})
		if got.Created != tc.created || got.Removed != tc.removed {
			t.Errorf("%s: created %s, removed %s, want %s and %s", tc.name, got.Created, got.Removed, tc.created, tc.removed)
		}
		silent := tc.created == toldNone && tc.removed == toldNone
		if (got.To == nil) != silent || (got.Detail == "") != (tc.created == toldAll && tc.removed == toldAll) {
			t.Errorf("%s: %+v", tc.name, got)
		}
		if deaf([]heard{got}) != (tc.created == toldNone || tc.removed == toldNone) {
			t.Errorf("%s: deaf is wrong", tc.name)
		}
	}
	got := judgeNotifications([]s3bucket.Notification{notify("in/", ".jpg", created), notify("in/", "", removed)}, config.Pipeline{Name: "p", Match: pictures})
	want := heard{
		Pipeline: "p", Created: toldPart, Removed: toldAll, To: []string{"q"},
		Detail: "not told for every key: s3:ObjectCreated:Put, s3:ObjectCreated:Post, s3:ObjectCreated:Copy, s3:ObjectCreated:CompleteMultipartUpload",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
