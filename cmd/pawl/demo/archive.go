package demo

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"time"

	"github.com/pawlhq/pawl/internal/fakes3"
)

// ArchiveOptions say how the demo of archives runs. Terminal may be left out.
type ArchiveOptions struct {
	// Binary is the pawl program: the workers are processes of it.
	Binary string
	// Once ends the demo when it has shown what it shows. Otherwise it stays
	// up, for its user's own records, until the context ends.
	Once bool
	// Out is told what goes on, in lines for people.
	Out io.Writer
	// Terminal says that a person watches Out: progress is shown.
	Terminal bool
	// Report is called once, when all has been shown.
	Report func(*ArchiveReport) error
}

const (
	archiveBucket  = "lake"
	archivePrefix  = "clicks/"
	archiveFormat  = "ndjson.gz"
	archiveRecords = 6000
	putting        = 4 * time.Second // the span in which they are put
)

// archiveConfiguration is the file that all workers share. Objects are small and
// leases short, so that there is something to watch.
const archiveConfiguration = `
ledger: %s
objects: {endpoint: %s, region: ` + region + `, path_style: true}
archives:
  - name: clicks
    kinesis: {stream: ` + streamName + `, endpoint: %s, region: ` + region + `}
    to: s3://` + archiveBucket + `/` + archivePrefix + `
    format: ` + archiveFormat + `
    bytes: 64KiB
    age: 1s
lease: {ttl: 2s}
`

// archiveShow is one run of the demo of archives.
type archiveShow struct {
	ArchiveOptions
	dir    string
	report *ArchiveReport
	screen *screen

	store            *store
	late             *latecomer
	stream           *stream
	objects, records *endpoint
	fleet            *fleet
	victim           *worker // one of them
}

// RunArchive puts records into a stream, has worker processes store them in a
// bucket, kills one of these in the middle of an object, and proves that each
// record is stored once. An error matches [ErrWrong] where one is not. Everything
// that RunArchive started has ended when it returns. Its folder is removed, unless
// there is an error for which its logs may be wanted: that names it.
func RunArchive(ctx context.Context, o ArchiveOptions) error {
	dir, err := os.MkdirTemp("", "pawl-demo-")
	if err != nil {
		return fmt.Errorf("make a folder for the demo: %w", err)
	}
	s := &archiveShow{
		ArchiveOptions: o, dir: dir, report: &ArchiveReport{}, screen: &screen{out: o.Out, terminal: o.Terminal},
		stream: newStream(), fleet: newFleet(o.Binary, dir, "", "archive", "run"),
	}
	err = s.run(ctx)
	if err != nil && ctx.Err() == nil && s.fleet.size() > 0 {
		return fmt.Errorf("%w\nlogs, ledger and configuration are in %s", err, dir)
	}
	return errors.Join(err, os.RemoveAll(dir))
}

func (s *archiveShow) run(ctx context.Context) (err error) {
	s.screen.say("pawl archive demo\n\n")
	defer func() { err = errors.Join(err, s.close()) }()
	if err := s.open(ctx); err != nil {
		return err
	}
	if err := s.play(ctx); err != nil {
		return err
	}
	if err := s.Report(s.report); err != nil {
		return err
	}
	if err := s.report.err(); err != nil || s.Once {
		return err
	}
	s.stayUp(ctx)
	return nil
}

// open starts the store, the stream and the first two workers.
func (s *archiveShow) open(ctx context.Context) (err error) {
	if s.store, err = newStore(func(change) {}, archiveBucket); err != nil {
		return err
	}
	s.late = newLatecomer(fakes3.RefuseExpired(s3API(s.store)))
	if s.objects, err = serveFree(ctx, s.late); err != nil {
		return err
	}
	if s.records, err = serveFree(ctx, s.stream); err != nil {
		return err
	}
	text := fmt.Sprintf(archiveConfiguration[1:], quoted("sqlite:"+filepath.Join(s.dir, ledgerFile)), quoted(s.objects.url), quoted(s.records.url))
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
		s.screen.done("%s and %s share the shards, and one ledger", first, second)
	}
	return err
}

func serveFree(ctx context.Context, api http.Handler) (*endpoint, error) {
	return serve(ctx, "127.0.0.1:0", api)
}

// startWorker starts "pawl archive run", with an access key of its own.
func (s *archiveShow) startWorker() (*worker, error) {
	key := accessKeyOf(s.fleet.size() + 1)
	return s.fleet.launch("", append(environment("", ""), "AWS_ACCESS_KEY_ID="+key))
}

func accessKeyOf(number int) string { return fmt.Sprintf("worker-%d", number) }

// close ends what open started, in the opposite order.
func (s *archiveShow) close() error {
	s.screen.end()
	s.fleet.close(grace)
	if s.late != nil {
		s.late.release()
	}
	var errs []error
	for _, e := range []*endpoint{s.records, s.objects} {
		if e != nil {
			errs = append(errs, e.close())
		}
	}
	return errors.Join(errs...)
}

const archiveInvitation = `
Now you. Put a record into the stream:

  AWS_ACCESS_KEY_ID=%[1]s AWS_SECRET_ACCESS_KEY=%[1]s AWS_DEFAULT_REGION=%[2]s aws --endpoint-url %[3]s kinesis put-record --stream-name %[4]s --partition-key you --cli-binary-format raw-in-base64-out --data hello

Look at what is stored, how far each shard is, and whether all is there:

  AWS_ACCESS_KEY_ID=%[1]s AWS_SECRET_ACCESS_KEY=%[1]s AWS_DEFAULT_REGION=%[2]s aws --endpoint-url %[5]s s3 ls --recursive s3://%[6]s/
  AWS_ACCESS_KEY_ID=%[1]s AWS_SECRET_ACCESS_KEY=%[1]s %[7]s archive status -c %[8]s
  AWS_ACCESS_KEY_ID=%[1]s AWS_SECRET_ACCESS_KEY=%[1]s %[7]s archive verify --deep -c %[8]s

The workers' logs lie beside the configuration.
Ctrl-C ends the demo and removes all of this.

`

// stayUp tells people what to look at, and waits until ctx ends.
func (s *archiveShow) stayUp(ctx context.Context) {
	s.screen.say(archiveInvitation, accessKey, region, s.records.url, streamName, s.objects.url, archiveBucket,
		typed(s.Binary), shellWord(filepath.Join(s.dir, configFile)))
	<-ctx.Done()
}
