//go:build unix

package e2e

import (
	"bytes"
	"context"
	"crypto/rand"
	"flag"
	"fmt"
	"log/slog"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/pawlhq/pawl/archive"
	"github.com/pawlhq/pawl/bucket"
	"github.com/pawlhq/pawl/bucket/s3bucket"
	"github.com/pawlhq/pawl/cmd/pawl/config"
	"github.com/pawlhq/pawl/cmd/pawl/parts"
	"github.com/pawlhq/pawl/event"
	"github.com/pawlhq/pawl/ledger"
	"github.com/pawlhq/pawl/proof/servertest"
	"github.com/pawlhq/pawl/store/sqlite"
)

var (
	rateRecords = flag.Int("raterecords", 100_000, "records of 1 kB of BenchmarkArchiveRate")
	rateShards  = flag.Int("rateshards", 4, "shards of its stream")
	rateBytes   = flag.Int("ratebytes", 4<<20, "bytes of records in an object")
)

const (
	ratePage   = 1000
	rateRecord = 1000 // bytes
)

// BenchmarkArchiveRate compares an archive with a baseline that only encodes, compresses and PUTs the same
// records. The ratio shows the cost of intents, digests, claims, signatures and a ledger. It needs idle
// cores; on a busy machine only cpu-ratio is meaningful.
func BenchmarkArchiveRate(b *testing.B) {
	server := servertest.MinIO(b, servertest.Options{})
	store := open(b, server)
	lines := rateLines()
	n := *rateRecords / *rateShards * *rateShards
	var bare, took, bareCPU, cpu time.Duration
	var mb float64
	for b.Loop() {
		r := &archiveRate{Store: store, bucket: server.NewBucket(b), lines: lines, records: n / *rateShards}
		start, began := cpuTime(), time.Now()
		r.bare(b)
		bare, bareCPU = bare+time.Since(began), bareCPU+cpuTime()-start
		rise := memoryUse()
		start, began = cpuTime(), time.Now()
		r.archive(b)
		took, cpu = took+time.Since(began), cpu+cpuTime()-start
		mb = max(mb, rise())
	}
	stored := float64(b.N*n*rateRecord) / 1e6
	b.ReportMetric(stored/took.Seconds(), "MB/s")
	b.ReportMetric(stored/bare.Seconds(), "bare-MB/s")
	b.ReportMetric(bare.Seconds()/took.Seconds(), "ratio")
	b.ReportMetric(bareCPU.Seconds()/cpu.Seconds(), "cpu-ratio")
	b.ReportMetric(mb, "MB")
	b.ReportMetric(0, "ns/op")
	// Each shard holds the records of one object, their encoding, and a page. The garbage collector
	// allows as much garbage.
	if most := 2*float64(*rateShards*(2**rateBytes+ratePage*rateRecord))/1e6 + 32; mb > most {
		b.Errorf("%.0f MB more than at the start, want at most %.0f", mb, most)
	}
}

type archiveRate struct {
	*s3bucket.Store
	bucket  string
	lines   []byte
	records int
}

// rateLines returns text that compresses like a log.
func rateLines() []byte {
	var b bytes.Buffer
	for i := 0; b.Len() < 1<<20; i++ {
		fmt.Fprintf(&b, `{"at":%d,"user":"%s","action":"view","page":"/articles/%d","agent":"Mozilla/5.0 (X11; Linux x86_64)","took":%d}`,
			1774000000000+i*37, rand.Text()[:8], i*7919%5000, i*31%900)
	}
	return b.Bytes()
}

func (r *archiveRate) config(b *testing.B) archive.Config {
	b.Helper()
	a, err := parts.Archive(b.Context(), &config.Archive{
		Name: "rate", To: config.Location{Bucket: r.bucket, Prefix: "rate/"}, FlushBytes: config.Size(*rateBytes), FlushInterval: config.Duration(time.Hour),
		Kinesis: config.Kinesis{Stream: "rate", Endpoint: "http://127.0.0.1:1"},
	})
	if err != nil {
		b.Fatal(err)
	}
	return a
}

func (r *archiveRate) bare(b *testing.B) {
	b.Helper()
	a := r.config(b)
	work, ctx := errgroup.WithContext(b.Context())
	for i := range *rateShards {
		work.Go(func() error { return r.bareShard(ctx, a, fmt.Sprint(i)) })
	}
	if err := work.Wait(); err != nil {
		b.Fatal(err)
	}
}

func (r *archiveRate) bareShard(ctx context.Context, a archive.Config, shard string) error {
	var entries []archive.Record
	for at := 0; at < r.records; at += ratePage {
		page := r.page(at)
		if entries = append(entries, page.Records...); len(entries)*rateRecord < *rateBytes && !page.End {
			continue
		}
		body, err := a.Codec.Encode(a.Format, shard, entries)
		if err != nil {
			return err
		}
		ref := event.Object{Bucket: r.bucket, Key: fmt.Sprintf("bare/%s/%d", shard, at)}
		if _, err := r.Put(ctx, ref, bucket.Object{Body: bytes.NewReader(body), Size: int64(len(body))}, bucket.Condition{}); err != nil {
			return err
		}
		entries = nil
	}
	return nil
}

func (r *archiveRate) archive(b *testing.B) {
	b.Helper()
	records, err := sqlite.Open(b.Context(), filepath.Join(b.TempDir(), "rate.db"))
	if err != nil {
		b.Fatal(err)
	}
	ledger := ledger.NewRows(records)
	defer ledger.Close()
	ctx, stop := context.WithCancel(b.Context())
	defer stop()
	c := r.config(b)
	c.Stream, c.Store, c.Registers, c.Logger = r, r.Store, ledger, slog.New(slog.DiscardHandler)
	var stored atomic.Int64
	c.Observe = func(_ string, o archive.Planned) {
		if stored.Add(int64(o.Count)) == int64(r.records**rateShards) {
			stop()
		}
	}
	a, err := archive.New(c)
	if err != nil {
		b.Fatal(err)
	}
	runner := archive.Runner{Archives: []*archive.Archive{a}}
	if err := runner.Run(ctx); err != nil {
		b.Fatal(err)
	}
	if p, err := a.Verify(b.Context(), archive.VerifyOptions{}); err != nil || len(p.Findings) > 0 || p.Shards != *rateShards {
		b.Fatalf("%+v, %v", p, err)
	}
}

var rateAt = time.Now().UTC().Truncate(time.Second)

func (r *archiveRate) page(from int) (p archive.Page) {
	n := min(ratePage, r.records-from)
	p.End = from+n == r.records
	data := make([]byte, 0, n*rateRecord)
	for i := from; i < from+n; i++ {
		at := i * 769 % (len(r.lines) - rateRecord)
		data = append(data, r.lines[at:at+rateRecord]...)
		one := archive.UserRecord{
			Number: archive.Number(fmt.Sprintf("49%054d", i+1)), Sub: -1, PartitionKey: fmt.Sprint(i), Arrival: rateAt,
			Data: data[len(data)-rateRecord:],
		}
		p.Records = append(p.Records, archive.Record{Number: one.Number, Arrival: rateAt, PartitionKey: one.PartitionKey, UserRecords: []archive.UserRecord{one}})
	}
	return p
}

func (r *archiveRate) Identify(context.Context) (archive.StreamID, time.Duration, error) {
	return archive.StreamID{ARN: "rate", Created: rateAt}, 24 * time.Hour, nil
}

func (r *archiveRate) Shards(context.Context) (all []archive.Shard, err error) {
	for i := range *rateShards {
		all = append(all, archive.Shard{ID: fmt.Sprintf("shardId-%012d", i), First: "1", Last: archive.Number(fmt.Sprintf("5%055d", i))})
	}
	return all, nil
}

func (r *archiveRate) Open(context.Context, string, archive.Position) (archive.Reader, error) {
	return &rateReader{archiveRate: r}, nil
}

type rateReader struct {
	*archiveRate
	at int
}

func (r *rateReader) Next(context.Context) (archive.Page, error) {
	p := r.page(r.at)
	r.at += len(p.Records)
	return p, nil
}
