//go:build unix

package root_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pawlhq/pawl/cmd/pawl/app"
	"github.com/pawlhq/pawl/cmd/pawl/root"
	"github.com/pawlhq/pawl/proof/servertest"
)

// ElasticMQ has no MaximumMessageSize, so a proxy adds it.
func TestDoctorExaminesQueues(t *testing.T) {
	store, queues := servertest.S3(t), servertest.ElasticMQ(t)
	t.Setenv("AWS_ACCESS_KEY_ID", "pawl")
	t.Setenv("AWS_SECRET_ACCESS_KEY", "pawl")
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	bucket, url := store.NewBucket(t), queues.NewQueue(t, nil)
	for _, tc := range []struct {
		url, accepts, detail string
		max                  int64
		code                 int
	}{
		{queues.WithMaxMessage(t, url, 1<<20), "yes", "", 1 << 20, 0},
		{queues.WithMaxMessage(t, url, 64<<10), "yes", "", 64 << 10, 0},
		{queues.WithMaxMessage(t, url, 64<<10-1), "no", "raise MaximumMessageSize of the queue", 64<<10 - 1, 3},
		{url, "unknown", "reports no MaximumMessageSize", 0, 0},
	} {
		file := filepath.Join(t.TempDir(), "pawl.yaml")
		text := fmt.Sprintf("objects: {endpoint: %q, region: us-east-1, path_style: true}\nsources: [sqs: {url: %q}]\n"+
			"pipelines: [{name: mirror, match: {bucket: %s}, copy: {to: s3://out/a/}}]\n", store.Endpoint, tc.url, bucket)
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		var out, errs bytes.Buffer
		run := func(args ...string) int {
			out.Reset()
			return root.Main(t.Context(), append([]string{"doctor", "s3://" + bucket, "-c", file}, args...),
				app.Streams{In: strings.NewReader(""), Out: &out, Err: &errs})
		}
		if code := run("--json"); code != tc.code || errs.Len() > 0 {
			t.Errorf("%s: exit code %d, want %d: %s", tc.accepts, code, tc.code, &errs)
		}
		var got struct {
			Queues []struct {
				Queue, Accepts, Detail string
				Max                    int64 `json:"max_message_bytes"`
			}
		}
		if err := json.Unmarshal(out.Bytes(), &got); err != nil {
			t.Fatalf("%v: %s", err, &out)
		}
		if q := got.Queues; len(q) != 1 || q[0].Queue != tc.url || q[0].Accepts != tc.accepts || q[0].Max != tc.max || !strings.Contains(q[0].Detail, tc.detail) {
			t.Errorf("%+v, want %s %s", q, tc.accepts, tc.detail)
		}
		if run(); !strings.Contains(out.String(), "QUEUE") || !strings.Contains(out.String(), tc.url+"  "+tc.accepts) {
			t.Errorf("the table does not say %s of the queue: %s", tc.accepts, &out)
		}
	}
}
