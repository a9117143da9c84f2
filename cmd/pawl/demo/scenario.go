package demo

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"time"
)

// Options configure a demo. Listen and Terminal may be omitted.
type Options struct {
	Seed uint64
	// Binary is the path of the pawl program.
	Binary string
	// Once ends the demo after its report. Otherwise it runs until the context ends.
	Once bool
	// Listen is the loopback address of the store in the demo of pipelines. Default: a free port.
	Listen string
	Out    io.Writer
	// Terminal enables progress bars.
	Terminal bool
	// Report is called once, after the last check.
	Report func(Report) error
}

// Report is the result of a demo.
type Report interface {
	Print(w io.Writer) error
	err() error
}

// ErrWrong is returned if a check of a demo fails. The wrapping error lists the faults and names
// the folder with the logs.
var ErrWrong = errors.New("a check failed")

const shutdownTimeout = 5 * time.Second

// Validate sets defaults, and returns an error if an option is invalid.
func (o *Options) Validate() error {
	o.Listen = cmp.Or(o.Listen, "127.0.0.1:0")
	return checkLoopback(o.Listen)
}

type demoRun struct {
	Options
	dir, token string
	screen     *screen
	fleet      *fleet
	killed     *worker
	relay      *relay         // nil if the scenario sends no notifications
	closers    []func() error // called in reverse order, after relay and fleet have ended
}

// scenario is the part that differs between demos.
type scenario interface {
	// title returns the demo's command, and a description of its folder.
	title() (command, folder string)
	// open starts the store and the first two workers.
	open(ctx context.Context) error
	// run makes the changes, injects the faults, and checks the results.
	run(ctx context.Context) error
	result() Report
	// stayUp serves the user until ctx ends.
	stayUp(ctx context.Context) error
}

// runScenario removes the demo's folder, unless the returned error names it because of its logs.
// When it returns, all processes have ended.
func runScenario(ctx context.Context, o Options, command []string, begin func(*demoRun) scenario) error {
	if err := o.Validate(); err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "pawl-demo-")
	if err != nil {
		return fmt.Errorf("create a folder for the demo: %w", err)
	}
	s := &demoRun{Options: o, dir: dir, token: rand.Text(), screen: &screen{out: o.Out, terminal: o.Terminal}}
	s.fleet = newFleet(o.Binary, dir, s.token, command...)
	sc := begin(s)
	title, folder := sc.title()
	s.screen.printText("%s\n\n", title)
	err = errors.Join(s.steps(ctx, sc), s.close())
	if err != nil && ctx.Err() == nil && s.fleet.size() > 0 {
		return fmt.Errorf("%w\n%s are in %s", err, folder, dir)
	}
	return errors.Join(err, os.RemoveAll(dir))
}

func (s *demoRun) steps(ctx context.Context, sc scenario) error {
	if err := sc.open(ctx); err != nil {
		return err
	}
	if err := sc.run(ctx); err != nil {
		return err
	}
	r := sc.result()
	if err := s.Report(r); err != nil {
		return err
	}
	if err := r.err(); err != nil || s.Once {
		return err
	}
	return sc.stayUp(ctx)
}

func (s *demoRun) close() error {
	s.screen.end()
	if s.relay != nil {
		s.relay.close()
	}
	s.fleet.close(shutdownTimeout)
	var errs []error
	for _, c := range slices.Backward(s.closers) {
		errs = append(errs, c())
	}
	return errors.Join(errs...)
}

// The first worker will be killed.
func (s *demoRun) startFirstWorkers(ctx context.Context, line string) error {
	var err error
	if s.killed, err = s.fleet.start(ctx); err != nil {
		return err
	}
	second, err := s.fleet.start(ctx)
	if err == nil {
		s.screen.done("%s and %s "+line, s.killed, second)
	}
	return err
}

func (s *demoRun) startReplacement(ctx context.Context) error {
	next, err := s.fleet.start(ctx)
	if err == nil {
		s.screen.done("%s is started in its place", next)
	}
	return err
}

func (s *demoRun) serve(e *endpoint, err error) (*endpoint, error) {
	if err == nil {
		s.closers = append(s.closers, e.close)
	}
	return e, err
}
