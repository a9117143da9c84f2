package demo

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/pawlhq/pawl/files"
	"github.com/pawlhq/pawl/proof/rig"
	"github.com/pawlhq/pawl/store/sqlite"
)

// FilesOptions say how the demo of files runs. Terminal may be left out.
type FilesOptions struct {
	Seed uint64
	// Binary is the pawl program: the services are processes of it.
	Binary string
	// Once ends the demo when it has shown what it shows. Otherwise it stays up, and
	// serves a page to try files with, until the context ends.
	Once bool
	// Out is told what goes on, in lines for people.
	Out io.Writer
	// Terminal says that a person watches Out: progress is shown.
	Terminal bool
	// Report is called once, when all has been shown.
	Report func(*FilesReport) error
}

const (
	filesBucket = "uploads"
	filesPrefix = "files/"
	filesEntity = "album"
	indexFile   = "files.db"
)

// filesConfiguration is the file that all services share.
const filesConfiguration = `
objects: {endpoint: %s, region: ` + region + `, path_style: true}
sources:
  - webhook: {listen: "${` + listenVar + `}", path: ` + hookPath + `, token: "Bearer ${` + tokenVar + `}"}
files:
  to: s3://` + filesBucket + `/` + filesPrefix + `
  index: ` + indexFile + `
  listen: ${` + apiVar + `}
  secret: %s
  max_size: 64MiB
`

// filesShow is one run of the demo of files.
type filesShow struct {
	FilesOptions
	dir    string
	acts   []*act
	report *FilesReport
	screen *screen

	front    *front
	store    *store
	endpoint *endpoint // of the page, the services and the store
	client   *rig.FilesClient
	fleet    *fleet
	victim   *worker // one of them
	relay    *relay
	index    *files.Index

	mu sync.Mutex // held while the report is written during the tales
}

// RunFiles has service processes take in pictures, and delete some: with PUTs of wrong
// bytes, lost notifications, retries, uploads that break off, and a service that is
// killed. Then it proves that index and bucket agree. An error matches [ErrWrong]
// where they do not. Everything that RunFiles started has ended when it returns. Its
// folder is removed, unless there is an error for which its logs may be wanted: that
// names it.
func RunFiles(ctx context.Context, o FilesOptions) error {
	dir, err := os.MkdirTemp("", "pawl-demo-")
	if err != nil {
		return fmt.Errorf("make a folder for the demo: %w", err)
	}
	s := &filesShow{
		FilesOptions: o, dir: dir, acts: filesPlan(o.Seed), report: &FilesReport{Seed: o.Seed},
		screen: &screen{out: o.Out, terminal: o.Terminal},
	}
	err = s.run(ctx)
	if err != nil && ctx.Err() == nil && s.fleet.size() > 0 {
		return fmt.Errorf("%w\nlogs, index and configuration are in %s", err, dir)
	}
	return errors.Join(err, os.RemoveAll(dir))
}

func (s *filesShow) run(ctx context.Context) (err error) {
	s.screen.say("pawl files demo --seed %d\n\n", s.Seed)
	token := rand.Text()
	s.fleet = newFleet(s.Binary, s.dir, token, "files", "serve")
	s.relay = newRelay(s.Seed, token, s.fleet.webhooks)
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
	s.screen.say(filesInvitation, s.endpoint.url)
	<-ctx.Done()
	return nil
}

const filesInvitation = `
Now you. Open this page, and drag a picture in:

  %s

Ctrl-C ends the demo and removes all of this.

`

// open starts the store and the first two services, behind one address.
func (s *filesShow) open(ctx context.Context) (err error) {
	if s.store, err = newStore(s.relay.notify, filesBucket); err != nil {
		return err
	}
	s.front = &front{secret: []byte(rand.Text() + rand.Text()), apis: s.fleet.apis}
	handler, err := s.front.handler(s3API(s.store))
	if err != nil {
		return err
	}
	if s.endpoint, err = listen(ctx, "127.0.0.1:0", handler); err != nil {
		return err
	}
	text := fmt.Sprintf(filesConfiguration[1:], quoted(s.endpoint.url), quoted(string(s.front.secret)))
	if err := os.WriteFile(filepath.Join(s.dir, configFile), []byte(text), 0o600); err != nil {
		return err
	}
	s.screen.done("an object store listens on %s, with the bucket %s", s.endpoint.url, filesBucket)
	if s.victim, err = s.fleet.start(ctx); err != nil {
		return err
	}
	second, err := s.fleet.start(ctx)
	if err != nil {
		return err
	}
	s.screen.done("%s and %s serve files over one index", s.victim, second)
	records, err := sqlite.Open(ctx, filepath.Join(s.dir, indexFile))
	if err != nil {
		return err
	}
	s.index = files.NewIndex(records)
	token, err := s.front.issue("demo", time.Hour)
	s.client = &rig.FilesClient{Base: func() string { return s.endpoint.url }, Token: token, HTTP: &http.Client{Transport: &http.Transport{}, Timeout: patience}}
	return err
}

// close ends what run and open started, in the opposite order.
func (s *filesShow) close() error {
	s.screen.end()
	s.relay.close()
	if s.client != nil {
		s.client.HTTP.CloseIdleConnections()
	}
	s.fleet.close(grace)
	var errs []error
	if s.index != nil {
		errs = append(errs, s.index.Close())
	}
	if s.endpoint != nil {
		errs = append(errs, s.endpoint.close())
	}
	return errors.Join(errs...)
}
