//go:build unix

package e2e

import (
	"bufio"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
)

func (a *archiveTest) verify() {
	a.Helper()
	cmd := exec.CommandContext(a.Context(), a.fleet.binary, "archive", "verify", "--deep", "--json", "-c", a.fleet.config)
	cmd.Env = append(os.Environ(), a.fleet.env...)
	out, err := cmd.Output()
	if exit, ok := errors.AsType[*exec.ExitError](err); ok {
		a.Errorf("verify: %v\n%s\n%s", err, out, exit.Stderr)
	}
	var r struct{ Objects, Gaps, Shards, Entries int }
	if err := json.Unmarshal(out, &r); err != nil || r.Entries != a.put || r.Gaps > 0 || r.Shards < *archiveShards+a.reshards {
		a.Errorf("verify reports %s (%v), but %d records were put", out, err, a.put)
	}
	a.Logf("verify: %s", out)
}

func (a *archiveTest) readAll() {
	a.Helper()
	a.resetReader()
	a.readNew()
	wrong := len(a.records) - a.put
	for i := range a.put {
		if n := a.records[fmt.Sprintf("record-%d", i)]; n != 1 {
			if wrong++; wrong < 20 {
				a.Errorf("record-%d is stored %d times", i, n)
			}
		}
	}
	if wrong != 0 {
		a.Errorf("%d records were put, but %d different ones are stored", a.put, len(a.records))
	}
	a.Logf("the reader found %d objects with %d records, each once; %d kills and stops, %d times resharded, %d workers started",
		len(a.read), len(a.records), a.injectedFaults(), a.reshards, a.fleet.starts)
}

func (a *archiveTest) resetReader() { a.read, a.records = map[string]bool{}, map[string]int{} }

// readNew does not use Pawl's code, so that it is independent.
func (a *archiveTest) readNew() {
	a.Helper()
	pages := s3.NewListObjectsV2Paginator(a.server.Client(), &s3.ListObjectsV2Input{Bucket: &a.bucket, Prefix: aws.String("clicks/20")})
	for pages.HasMorePages() {
		page, err := pages.NextPage(a.Context())
		if err != nil {
			a.Fatal(err)
		}
		for _, o := range page.Contents {
			if !a.read[*o.Key] && !strings.Contains(*o.Key, "/_") { // a gap
				a.readObject(*o.Key)
			}
		}
	}
}

func (a *archiveTest) readObject(key string) {
	a.Helper()
	got, err := a.server.Client().GetObject(a.Context(), &s3.GetObjectInput{Bucket: &a.bucket, Key: &key})
	if err != nil {
		a.Fatal(err)
	}
	defer got.Body.Close()
	plain, err := gzip.NewReader(got.Body)
	if err != nil {
		a.Fatalf("%s: %v", key, err)
	}
	lines := bufio.NewScanner(plain)
	for lines.Scan() {
		var line struct{ Data string }
		if err := json.Unmarshal(lines.Bytes(), &line); err != nil {
			a.Fatalf("%s: %v in %s", key, err, lines.Text())
		}
		a.records[line.Data]++
	}
	if err := lines.Err(); err != nil {
		a.Fatalf("%s: %v", key, err)
	}
	a.read[key] = true
}
