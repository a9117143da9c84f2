package demo

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"github.com/pawlhq/pawl/ledger"
	"github.com/pawlhq/pawl/store/sqlite"
)

// Options say how the demo runs. Listen and Terminal may be left out.
type Options struct {
	Seed uint64
	// Binary is the pawl program: the workers are processes of it.
	Binary string
	// Once ends the demo when it has shown what it shows. Otherwise it stays
	// up, for its user's own pictures, until the context ends.
	Once bool
	// Listen is where the object store listens, on this machine only.
	// Default: a free port.
	Listen string
	// Out is told what goes on, in lines for people.
	Out io.Writer
	// Terminal says that a person watches Out: progress is shown.
	Terminal bool
	// Report is called once, when all has been shown.
	Report func(*Report) error
}

// grace is how long workers may take to end.
const grace = 5 * time.Second

// Validate fills in what was left out, and says what is wrong with the rest.
func (o *Options) Validate() error {
	o.Listen = cmp.Or(o.Listen, "127.0.0.1:0")
	return checkLoopback(o.Listen)
}

// Run plays a careless messenger between an object store and worker processes,
// kills one of these, and proves that the outputs are right. An error matches
// [ErrWrong] where they are not. Everything that Run started has ended when it
// returns. Its folder is removed, unless there is an error for which its logs may
// be wanted: that names it.
func Run(ctx context.Context, o Options) error {
	if err := o.Validate(); err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "pawl-demo-")
	if err != nil {
		return fmt.Errorf("make a folder for the demo: %w", err)
	}
	s := &show{
		Options: o, dir: dir, steps: plan(o.Seed), report: &Report{Seed: o.Seed},
		screen: &screen{out: o.Out, terminal: o.Terminal}, news: make(chan change, 100),
	}
	err = s.run(ctx)
	if err != nil && ctx.Err() == nil && s.fleet.size() > 0 {
		return fmt.Errorf("%w\nlogs, ledger and configuration are in %s", err, dir)
	}
	return errors.Join(err, os.RemoveAll(dir))
}

// show is one run of the demo.
type show struct {
	Options
	dir    string
	steps  []step
	report *Report
	screen *screen

	store           *store
	endpoint        *endpoint
	fleet           *fleet
	victim          *worker // one of them
	relay           *relay
	ledger          ledger.Store
	inputs, outputs tally
	// news are changes of the outputs, and uploads that the pipeline does not
	// want, if the caller asks for it.
	news chan change
}

func (s *show) run(ctx context.Context) (err error) {
	s.screen.say("pawl demo --seed %d\n\n", s.Seed)
	token := rand.Text()
	s.fleet = newFleet(s.Binary, s.dir, token, "run")
	s.relay = newRelay(s.Seed, token, s.fleet.webhooks)
	for _, step := range s.steps {
		s.relay.expect(step.key, step.handling)
	}
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
	return s.stayUp(ctx)
}

// open starts the store and the first two workers.
func (s *show) open(ctx context.Context) (err error) {
	if s.store, err = newStore(s.told, inputBucket, outputBucket); err != nil {
		return err
	}
	if s.endpoint, err = serve(ctx, s.Listen, s3API(s.store)); err != nil {
		return err
	}
	if err := writeConfig(s.dir, s.endpoint.url); err != nil {
		return err
	}
	s.screen.done("an object store listens on %s, with the buckets %s and %s", s.endpoint.url, inputBucket, outputBucket)
	if s.victim, err = s.fleet.start(ctx); err != nil {
		return err
	}
	second, err := s.fleet.start(ctx)
	if err != nil {
		return err
	}
	records, err := sqlite.Open(ctx, filepath.Join(s.dir, ledgerFile))
	if err != nil {
		return err
	}
	s.ledger = ledger.Over(records)
	s.screen.done("%s and %s share one ledger", s.victim, second)
	return nil
}

// told hears of every change in the store, and must not wait.
func (s *show) told(c change) {
	switch c.bucket {
	case inputBucket:
		s.inputs.add(c)
		s.relay.notify(c)
		if unwanted(c.key) != "" {
			s.tell(c)
		}
	case outputBucket:
		s.outputs.add(c)
		s.tell(c)
	}
}

// tell passes news on, and does not wait.
func (s *show) tell(c change) {
	select {
	case s.news <- c:
	default: // nobody listens
	}
}

// close ends what run and open started, in the opposite order.
func (s *show) close() error {
	s.screen.end()
	s.relay.close()
	s.fleet.close(grace)
	var errs []error
	if s.ledger != nil {
		errs = append(errs, s.ledger.Close())
	}
	if s.endpoint != nil {
		errs = append(errs, s.endpoint.close())
	}
	return errors.Join(errs...)
}
