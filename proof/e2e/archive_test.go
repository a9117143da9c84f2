//go:build unix

package e2e

import (
	"flag"
	"fmt"
	"math/big"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/kinesis"
	"github.com/aws/aws-sdk-go-v2/service/kinesis/types"

	"github.com/pawlhq/pawl/proof/servertest"
)

var (
	archiveRecords = flag.Int("archiverecords", 20_000, "records that TestArchive puts")
	archiveShards  = flag.Int("archiveshards", 4, "shards of its stream, at the beginning")
	archiveKills   = flag.Int("archivekills", 5, "SIGKILLs of its workers")
	archiveStops   = flag.Int("archivestops", 1, "SIGSTOPs of its workers")
	archiveStop    = flag.Duration("archivestop", 2*archiveLease, "duration of a SIGSTOP")
)

const (
	archiveWorkers  = 3
	archiveLease    = 2 * time.Second
	archiveReshards = 12 // at most
)

const archiveConfig = `
ledger: %q
objects: {endpoint: %q, region: us-east-1, path_style: true}
archives:
  - name: clicks
    kinesis: {stream: %s, endpoint: %q, region: us-east-1}
    to: s3://%s/clicks/
    flush_bytes: 64KiB
    flush_interval: 2s
lease: {ttl: %s}
`

type archiveTest struct {
	*testing.T
	fleet    *fleet
	rng      *rand.Rand
	streams  *servertest.Streams
	stream   string
	server   *servertest.Server
	bucket   string
	put      int
	reshards int
	read     map[string]bool
	records  map[string]int // number of times that each was read
}

// Verify and an independent reader find each record once.
func TestArchive(t *testing.T) {
	t.Parallel()
	t.Run("kinesalite", func(t *testing.T) { testArchive(t, servertest.Kinesalite, *archiveRecords) })
	// kinesis-local is much slower.
	t.Run("kinesis-local", func(t *testing.T) { testArchive(t, servertest.KinesisLocal, *archiveRecords/10) })
	t.Run("DynamoDB", func(t *testing.T) {
		testArchive(t, servertest.Kinesalite, *archiveRecords/10, (*archiveTest).useDynamoDB)
	})
}

func testArchive(t *testing.T, streams func(testing.TB) *servertest.Streams, records int, prepare ...func(*archiveTest)) {
	t.Parallel()
	seed := *firstSeed
	if seed == 0 {
		seed = rand.Uint64()
	}
	t.Logf("to repeat: -run %q -seed=%d", t.Name(), seed)
	a := newArchiveTest(t, streams(t), rand.New(rand.NewPCG(seed, 16)))
	for _, f := range prepare {
		f(a)
	}
	a.fleet.start(t, archiveWorkers)
	faults, parts := planArchiveFaults(a.rng), *archiveKills+*archiveStops
	faultsDone := make(chan error, 1)
	go func() { faultsDone <- a.fleet.injectAll(t.Context(), faults) }()
	for part := range parts + 1 { // some records after each fault
		a.waitForFaults(part, faultsDone)
		a.putUntil((part + 1) * records / (parts + 1))
		if max(1, parts/archiveReshards)*(a.reshards+1) <= part+1 {
			a.reshard()
		}
	}
	if err := <-faultsDone; err != nil {
		t.Fatal(err)
	}
	a.waitUntilStored()
	a.fleet.stop(t)
	a.verify()
	a.readAll()
}

func newArchiveTest(t *testing.T, streams *servertest.Streams, rng *rand.Rand) *archiveTest {
	dir := t.TempDir()
	a := &archiveTest{T: t, rng: rng, streams: streams, server: servertest.MinIO(t, servertest.Options{})}
	a.stream, a.bucket = a.streams.NewStream(t, int32(*archiveShards)), a.server.NewBucket(t)
	a.resetReader()
	a.fleet = &fleet{
		binary: build(t), dir: dir, config: filepath.Join(dir, "pawl.yaml"), command: []string{"archive", "run"},
		env: []string{"AWS_ACCESS_KEY_ID=" + a.server.AccessKey, "AWS_SECRET_ACCESS_KEY=" + a.server.SecretKey},
	}
	a.writeConfig(a.stream, a.streams.Endpoint, a.server.Endpoint)
	return a
}

func (a *archiveTest) writeConfig(stream, streams, objects string) {
	a.Helper()
	text := fmt.Sprintf(archiveConfig, "sqlite:"+filepath.Join(a.fleet.dir, "pawl.db"), objects, stream, streams, a.bucket, archiveLease)
	if err := os.WriteFile(a.fleet.config, []byte(text), 0o600); err != nil {
		a.Fatal(err)
	}
}

func (a *archiveTest) useDynamoDB() {
	a.Helper()
	table := newTable(a.T, servertest.DynamoDB(a.T), a.fleet.binary)
	a.fleet.config = a.writeVariant("dynamodb", "sqlite:"+filepath.Join(a.fleet.dir, "pawl.db"), table)
}

// Faults leave enough time between for takeovers.
func planArchiveFaults(rng *rand.Rand) [][]plannedFault {
	dealt := make([][]plannedFault, archiveWorkers)
	for i := range *archiveKills + *archiveStops {
		s := plannedFault{anyTime: true, after: time.Duration(rng.Int64N(int64(2 * archiveLease)))}
		if i < *archiveStops {
			s.freeze = *archiveStop
		}
		dealt[i%archiveWorkers] = append(dealt[i%archiveWorkers], s)
	}
	for _, faults := range dealt {
		rng.Shuffle(len(faults), func(i, j int) { faults[i], faults[j] = faults[j], faults[i] })
	}
	return dealt
}

func (a *archiveTest) waitForFaults(n int, faultsDone chan error) {
	a.Helper()
	for a.injectedFaults() < n {
		select {
		case err := <-faultsDone:
			if faultsDone <- err; err != nil {
				a.Fatal(err)
			}
			return
		case <-time.After(20 * time.Millisecond):
		}
	}
}

func (a *archiveTest) injectedFaults() int {
	a.fleet.mu.Lock()
	defer a.fleet.mu.Unlock()
	return len(a.fleet.injected)
}

func (a *archiveTest) putUntil(to int) {
	a.Helper()
	for a.put < to {
		batch := make([]types.PutRecordsRequestEntry, min(to-a.put, 200))
		for i := range batch {
			batch[i] = types.PutRecordsRequestEntry{
				Data: fmt.Appendf(nil, "record-%d", a.put), PartitionKey: aws.String(fmt.Sprint(a.rng.Int())),
			}
			a.put++
		}
		out, err := a.streams.Client().PutRecords(a.Context(), &kinesis.PutRecordsInput{StreamName: &a.stream, Records: batch})
		if err != nil || *out.FailedRecordCount > 0 {
			a.Fatalf("putting records: %v", err)
		}
	}
}

// reshard splits an open shard or merges two neighbors, alternately.
func (a *archiveTest) reshard() {
	a.Helper()
	c := a.streams.Client()
	out, err := c.ListShards(a.Context(), &kinesis.ListShardsInput{StreamName: &a.stream})
	if err != nil {
		a.Fatal(err)
	}
	open := slices.DeleteFunc(out.Shards, func(s types.Shard) bool { return s.SequenceNumberRange.EndingSequenceNumber != nil })
	slices.SortFunc(open, func(s, t types.Shard) int {
		return number(*s.HashKeyRange.StartingHashKey).Cmp(number(*t.HashKeyRange.StartingHashKey))
	})
	i := a.rng.IntN(len(open) - 1)
	if a.reshards++; a.reshards%2 == 1 {
		keys := open[i].HashKeyRange
		middle := number(*keys.StartingHashKey)
		middle.Add(middle, number(*keys.EndingHashKey)).Rsh(middle, 1)
		_, err = c.SplitShard(a.Context(), &kinesis.SplitShardInput{
			StreamName: &a.stream, ShardToSplit: open[i].ShardId, NewStartingHashKey: aws.String(middle.String()),
		})
	} else {
		_, err = c.MergeShards(a.Context(), &kinesis.MergeShardsInput{
			StreamName: &a.stream, ShardToMerge: open[i].ShardId, AdjacentShardToMerge: open[i+1].ShardId,
		})
	}
	if err != nil {
		a.Fatal(err)
	}
	a.streams.WaitActive(a.T, a.stream)
}

func number(digits string) *big.Int {
	n, _ := new(big.Int).SetString(digits, 10)
	return n
}

func (a *archiveTest) waitUntilStored() {
	a.Helper()
	const patience = 3 * time.Minute // without progress
	stored, since := 0, time.Now()
	for a.readNew(); len(a.records) < a.put; a.readNew() {
		if len(a.records) > stored {
			stored, since = len(a.records), time.Now()
		}
		if time.Since(since) > patience {
			a.Fatalf("%d of %d records are stored, no progress for %v", stored, a.put, patience)
		}
		select {
		case <-time.After(500 * time.Millisecond):
		case <-a.Context().Done():
			a.Fatal(a.Context().Err())
		}
	}
}
