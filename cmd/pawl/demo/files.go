package demo

import (
	"context"
	"crypto/rand"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/pawlhq/pawl/files"
	"github.com/pawlhq/pawl/proof/rig"
	"github.com/pawlhq/pawl/store/sqlite"
)

const (
	filesBucket = "uploads"
	filesPrefix = "files/"
	filesEntity = "album"
	indexFile   = "files.db"
)

const filesConfigTemplate = `
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

type filesScenario struct {
	*demoRun
	uploads []*clientFile
	report  *FilesReport

	front    *frontend
	store    *store
	endpoint *endpoint // serves the page, the services and the store
	client   *rig.FilesClient
	index    *files.Index

	mu sync.Mutex // held while clients write the report
}

// RunFiles runs the demo of files with faulty clients, lost notifications and a killed service. It
// returns [ErrWrong] if index and bucket differ.
func RunFiles(ctx context.Context, o Options) error {
	return runScenario(ctx, o, []string{"files", "serve"}, func(s *demoRun) scenario {
		s.relay = newRelay(o.Seed, s.token, s.fleet.webhooks)
		return &filesScenario{demoRun: s, uploads: filesPlan(o.Seed), report: &FilesReport{Seed: o.Seed}}
	})
}

func (s *filesScenario) title() (command, folder string) {
	return fmt.Sprintf("pawl files demo --seed %d", s.Seed), "logs, index and configuration"
}

func (s *filesScenario) result() Report { return s.report }

const filesUsage = `
Try it. Open this page, and drag a picture into it:

  %s

Ctrl-C ends the demo and removes all of this.

`

func (s *filesScenario) stayUp(ctx context.Context) error {
	s.screen.printText(filesUsage, s.endpoint.url)
	<-ctx.Done()
	return nil
}

func (s *filesScenario) open(ctx context.Context) (err error) {
	if s.store, err = newStore(s.relay.notify, filesBucket); err != nil {
		return err
	}
	s.front = &frontend{secret: []byte(rand.Text() + rand.Text()), apis: s.fleet.apis}
	handler, err := s.front.handler(s3API(s.store))
	if err != nil {
		return err
	}
	if s.endpoint, err = s.serve(listen(ctx, "127.0.0.1:0", handler)); err != nil {
		return err
	}
	text := fmt.Sprintf(filesConfigTemplate[1:], quoted(s.endpoint.url), quoted(string(s.front.secret)))
	if err := os.WriteFile(filepath.Join(s.dir, configFile), []byte(text), 0o600); err != nil {
		return err
	}
	s.screen.done("an object store listens on %s, with the bucket %s", s.endpoint.url, filesBucket)
	if err := s.startFirstWorkers(ctx, "serve files over one index"); err != nil {
		return err
	}
	records, err := sqlite.Open(ctx, filepath.Join(s.dir, indexFile))
	if err != nil {
		return err
	}
	s.index = files.NewIndex(records)
	token, err := s.front.issue("demo", time.Hour)
	client := &http.Client{Transport: &http.Transport{}, Timeout: stepTimeout}
	s.client = &rig.FilesClient{Base: func() string { return s.endpoint.url }, Token: token, HTTP: client}
	s.closers = append(s.closers, s.index.Close, func() error { client.CloseIdleConnections(); return nil })
	return err
}
