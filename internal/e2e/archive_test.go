package e2e

import (
	"bufio"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/big"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/kinesis"
	"github.com/aws/aws-sdk-go-v2/service/kinesis/types"
	"github.com/aws/aws-sdk-go-v2/service/s3"

	"github.com/pawlhq/pawl/internal/servertest"
)

const (
	archiveConfig = `
ledger: sqlite:%s
objects: {endpoint: %q, region: us-east-1, path_style: true}
archives:
  - name: clicks
    kinesis: {stream: %s, endpoint: %q, region: us-east-1}
    to: s3://%s/clicks/
    bytes: 64KiB
    age: 2s
`
	archiveShards  = 4
	archiveRecords = 6_000
	archiveKills   = 8
	archiveWorkers = 3
)

// archiving is a stream, a bucket and the workers between.
type archiving struct {
	*testing.T
	binary, config string
	env            []string
	streams        *servertest.Streams
	stream         string
	server         *servertest.Server
	bucket         string
	put            int // records
}

// TestArchive stores the records of a stream by workers that are killed, while
// they are put and a shard is split. Verify and an independent reader find each of
// them once.
func TestArchive(t *testing.T) {
	t.Parallel() // it waits more than it works
	dir := t.TempDir()
	a := &archiving{T: t, binary: build(t, dir), streams: servertest.Kinesalite(t), server: servertest.MinIO(t, servertest.Options{})}
	a.stream, a.bucket = a.streams.NewStream(t, archiveShards), a.server.NewBucket(t)
	a.config = filepath.Join(dir, "pawl.yaml")
	text := fmt.Sprintf(archiveConfig, filepath.Join(dir, "pawl.db"), a.server.Endpoint, a.stream, a.streams.Endpoint, a.bucket)
	if err := os.WriteFile(a.config, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	a.env = append(os.Environ(), "AWS_ACCESS_KEY_ID="+a.server.AccessKey, "AWS_SECRET_ACCESS_KEY="+a.server.SecretKey)

	ctx, stop := context.WithCancel(t.Context())
	var workers sync.WaitGroup
	kills := make(chan struct{}, archiveKills)
	for range archiveWorkers {
		workers.Go(func() { a.worker(ctx, kills) })
	}
	for range 3 {
		a.fill(archiveRecords / 3)
		for range archiveKills / 4 {
			kills <- struct{}{}
		}
		a.split()
	}
	a.settle()
	stop()
	workers.Wait()
	a.verified()
	a.read()
}

// worker runs a worker, and another one each time it is killed.
func (a *archiving) worker(ctx context.Context, kills <-chan struct{}) {
	for ctx.Err() == nil {
		cmd := exec.Command(a.binary, "archive", "run", "-c", a.config)
		var log strings.Builder
		cmd.Env, cmd.Stderr = a.env, &log
		if err := cmd.Start(); err != nil {
			a.Error(err)
			return
		}
		ended := make(chan error, 1)
		go func() { ended <- cmd.Wait() }()
		select {
		case <-kills:
			_ = cmd.Process.Kill()
			<-ended
		case <-ctx.Done():
			_ = cmd.Process.Signal(syscall.SIGTERM)
			if err := <-ended; err != nil {
				a.Errorf("a worker that was told to end: %v\n%s", err, log.String())
			}
		case err := <-ended:
			a.Errorf("a worker ended by itself: %v\n%s", err, log.String())
			return
		}
	}
}

// fill puts records, each with a number of its own.
func (a *archiving) fill(n int) {
	a.Helper()
	for n > 0 {
		var batch []types.PutRecordsRequestEntry
		for ; n > 0 && len(batch) < 200; n-- {
			batch = append(batch, types.PutRecordsRequestEntry{
				Data: fmt.Appendf(nil, "record-%d", a.put), PartitionKey: aws.String(fmt.Sprint(rand.Int())),
			})
			a.put++
		}
		out, err := a.streams.Client().PutRecords(a.Context(), &kinesis.PutRecordsInput{StreamName: &a.stream, Records: batch})
		if err != nil || *out.FailedRecordCount > 0 {
			a.Fatalf("putting records: %v", err)
		}
	}
}

// split splits the first open shard.
func (a *archiving) split() {
	a.Helper()
	c := a.streams.Client()
	out, err := c.ListShards(a.Context(), &kinesis.ListShardsInput{StreamName: &a.stream})
	if err != nil {
		a.Fatal(err)
	}
	for _, s := range out.Shards {
		if s.SequenceNumberRange.EndingSequenceNumber != nil {
			continue
		}
		_, err := c.SplitShard(a.Context(), &kinesis.SplitShardInput{
			StreamName: &a.stream, ShardToSplit: s.ShardId, NewStartingHashKey: aws.String(middle(*s.HashKeyRange.StartingHashKey, *s.HashKeyRange.EndingHashKey)),
		})
		if err != nil {
			a.Fatal(err)
		}
		a.streams.Active(a.T, a.stream)
		return
	}
}

// middle returns the number between two.
func middle(from, to string) string {
	a, _ := new(big.Int).SetString(from, 10)
	b, _ := new(big.Int).SetString(to, 10)
	return a.Add(a, b).Rsh(a, 1).String()
}

// settle waits until all records are stored, as the objects' own content has it.
func (a *archiving) settle() {
	a.Helper()
	for deadline := time.Now().Add(3 * time.Minute); a.count() < a.put; {
		if time.Now().After(deadline) {
			a.Fatalf("%d of %d records are stored after 3 minutes", a.count(), a.put)
		}
		select {
		case <-time.After(500 * time.Millisecond):
		case <-a.Context().Done():
		}
	}
}

func (a *archiving) count() int { return len(a.records()) }

// records reads the whole bucket, and returns how often each record is there.
func (a *archiving) records() map[string]int {
	a.Helper()
	found := map[string]int{}
	pages := s3.NewListObjectsV2Paginator(a.server.Client(), &s3.ListObjectsV2Input{Bucket: &a.bucket, Prefix: aws.String("clicks/20")})
	for pages.HasMorePages() {
		page, err := pages.NextPage(a.Context())
		if err != nil {
			a.Fatal(err)
		}
		for _, o := range page.Contents {
			a.object(*o.Key, found)
		}
	}
	return found
}

func (a *archiving) object(key string, found map[string]int) {
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
	for lines := bufio.NewScanner(plain); lines.Scan(); {
		var line struct{ Data string }
		if err := json.Unmarshal(lines.Bytes(), &line); err != nil {
			a.Fatalf("%s: %v in %s", key, err, lines.Text())
		}
		found[line.Data]++
	}
}

// verified holds the archive to what Pawl says of it.
func (a *archiving) verified() {
	a.Helper()
	cmd := exec.CommandContext(a.Context(), a.binary, "archive", "verify", "--deep", "--json", "-c", a.config)
	cmd.Env = a.env
	out, err := cmd.Output()
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		a.Errorf("verify: %v\n%s\n%s", err, out, exit.Stderr)
	}
	var r struct{ Objects, Gaps, Shards, Entries int }
	if err := json.Unmarshal(out, &r); err != nil || r.Entries != a.put || r.Gaps > 0 || r.Shards < archiveShards {
		a.Errorf("verify says %s (%v), and %d records were put", out, err, a.put)
	}
	a.Logf("verify: %s", out)
}

// read holds it to an independent reader.
func (a *archiving) read() {
	a.Helper()
	found := a.records()
	for i := range a.put {
		if n := found[fmt.Sprintf("record-%d", i)]; n != 1 {
			a.Errorf("record-%d is stored %d times", i, n)
		}
	}
}
