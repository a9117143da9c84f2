package demo

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/pawlhq/pawl/internal/fakes3"
)

const (
	archiveBucket  = "lake"
	archivePrefix  = "clicks/"
	archiveFormat  = "ndjson.gz"
	archiveRecords = 6000
	puttingSpan    = 4 * time.Second
)

// Objects are small and leases short, so that much happens in a short demo.
const archiveConfigTemplate = `
ledger: %s
objects: {endpoint: %s, region: ` + region + `, path_style: true}
archives:
  - name: clicks
    kinesis: {stream: ` + streamName + `, endpoint: %s, region: ` + region + `}
    to: s3://` + archiveBucket + `/` + archivePrefix + `
    format: ` + archiveFormat + `
    flush_bytes: 64KiB
    flush_interval: 1s
lease: {ttl: 2s}
`

type archiveScenario struct {
	*demoRun
	report *ArchiveReport

	store            *store
	delayer          *putDelayer
	stream           *stream
	objects, records *endpoint
}

// RunArchive runs the demo of archives. It kills a worker that is storing an object. It returns
// [ErrWrong] if a check fails.
func RunArchive(ctx context.Context, o Options) error {
	return runScenario(ctx, o, []string{"archive", "run"}, func(s *demoRun) scenario {
		return &archiveScenario{demoRun: s, report: &ArchiveReport{}, stream: newStream()}
	})
}

func (s *archiveScenario) title() (command, folder string) {
	return "pawl archive demo", "logs, ledger and configuration"
}

func (s *archiveScenario) result() Report { return s.report }

func (s *archiveScenario) open(ctx context.Context) (err error) {
	if s.store, err = newStore(func(change) {}, archiveBucket); err != nil {
		return err
	}
	s.delayer = newPutDelayer(fakes3.RefuseExpired(s3API(s.store)))
	if s.objects, err = s.serve(serve(ctx, "127.0.0.1:0", s.delayer)); err != nil {
		return err
	}
	if s.records, err = s.serve(serve(ctx, "127.0.0.1:0", s.stream)); err != nil {
		return err
	}
	s.closers = append(s.closers, func() error { s.delayer.release(); return nil })
	text := fmt.Sprintf(archiveConfigTemplate[1:], quoted("sqlite:"+filepath.Join(s.dir, ledgerFile)), quoted(s.objects.url), quoted(s.records.url))
	if err := os.WriteFile(filepath.Join(s.dir, configFile), []byte(text), 0o600); err != nil {
		return err
	}
	s.screen.done("a stream with %d shards listens on %s, an object store on %s", streamShards, s.records.url, s.objects.url)
	first, err := s.startWorker()
	if err != nil {
		return err
	}
	second, err := s.startWorker()
	if err == nil {
		s.screen.done("%s and %s divide the shards and use one ledger", first, second)
	}
	return err
}

func (s *archiveScenario) startWorker() (*worker, error) {
	key := accessKeyOf(s.fleet.size() + 1)
	return s.fleet.launch("", append(environment("", ""), "AWS_ACCESS_KEY_ID="+key))
}

func accessKeyOf(number int) string { return fmt.Sprintf("worker-%d", number) }

const archiveUsage = `
Try it. Put a record into the stream:

  AWS_ACCESS_KEY_ID=%[1]s AWS_SECRET_ACCESS_KEY=%[1]s AWS_DEFAULT_REGION=%[2]s aws --endpoint-url %[3]s kinesis put-record --stream-name %[4]s --partition-key you --cli-binary-format raw-in-base64-out --data hello

List the stored objects, show the progress of each shard, and verify the archive:

  AWS_ACCESS_KEY_ID=%[1]s AWS_SECRET_ACCESS_KEY=%[1]s AWS_DEFAULT_REGION=%[2]s aws --endpoint-url %[5]s s3 ls --recursive s3://%[6]s/
  AWS_ACCESS_KEY_ID=%[1]s AWS_SECRET_ACCESS_KEY=%[1]s %[7]s archive status -c %[8]s
  AWS_ACCESS_KEY_ID=%[1]s AWS_SECRET_ACCESS_KEY=%[1]s %[7]s archive verify --deep -c %[8]s

The workers' logs are next to the configuration.
Ctrl-C ends the demo and removes all of this.

`

func (s *archiveScenario) stayUp(ctx context.Context) error {
	s.screen.printText(archiveUsage, accessKey, region, s.records.url, streamName, s.objects.url, archiveBucket,
		commandName(s.Binary), shellWord(filepath.Join(s.dir, configFile)))
	<-ctx.Done()
	return nil
}
