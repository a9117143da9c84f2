package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/lestrrat-go/jwx/v3/jwk"
	"github.com/spf13/cobra"
	"golang.org/x/sync/errgroup"

	"github.com/pawlhq/pawl"
	"github.com/pawlhq/pawl/bucket"
	"github.com/pawlhq/pawl/files"
	"github.com/pawlhq/pawl/files/filesapi"
	"github.com/pawlhq/pawl/files/s3objects"
	"github.com/pawlhq/pawl/internal/config"
	"github.com/pawlhq/pawl/internal/parts"
	"github.com/pawlhq/pawl/store"
	"github.com/pawlhq/pawl/store/postgres"
	"github.com/pawlhq/pawl/store/sqlite"
)

func newFilesCommand(a *app) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "files",
		Short: "Upload files into a bucket, and find them again",
		Long: `Files serves an API by which clients upload files straight into a bucket, list them,
delete them and have them back. An index keeps what there is; the notifications of
the store keep the two together. docs/FILES.md says how.`,
		Example: `  pawl files serve
  pawl files audit --dry-run
  pawl files demo`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(&cobra.Command{
		Use:   "serve",
		Short: "Serve the API until told to end",
		Long: `Serve listens for clients, takes notifications from the sources of the configuration,
and looks at files whose time has come. SIGINT or SIGTERM ends it in order.`,
		Example: `  pawl files serve -c pawl.yaml`,
		Args:    noArgs,
		RunE:    func(cmd *cobra.Command, _ []string) error { return runFilesServe(cmd.Context(), a) },
	}, newFilesAuditCommand(a), newFilesRebuildCommand(a), newFilesTokenCommand(a), newFilesDemoCommand(a))
	return cmd
}

func runFilesServe(ctx context.Context, a *app) (err error) {
	log, err := a.logger(a.Err, slog.LevelInfo)
	if err != nil {
		return err
	}
	ctx, stop := untilSignal(ctx, log)
	defer stop()
	m, err := a.assemble(ctx, a.parts.Load, log, false)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, m.close()) }()
	c := m.config.Files
	if c == nil {
		return errNoFiles(m.config)
	}
	objects := m.fileObjects(c)
	service, err := m.fileService(ctx, c, objects, true)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, service.Index.Close()) }()
	handler, err := m.filesHandler(ctx, c, service)
	if err != nil {
		return m.config.At("files", err)
	}
	m.parts.Pipelines = append(m.parts.Pipelines, filesPipeline(c, service))
	m.parts.Check = func(ctx context.Context) error { return m.checkFiles(ctx, c, objects) }
	sources, err := m.sources(ctx)
	if err != nil {
		return err
	}
	p, err := m.build(sources...)
	if err != nil {
		return err
	}
	return m.serveFiles(ctx, service, handler, p)
}

func errNoFiles(c *config.Config) error {
	return c.At("files", errors.New("is missing: say where files go (files: {to: s3://bucket/prefix/, secret: …})"))
}

// checkFiles looks whether the bucket is there and fit for files. A store that is down
// may be waiting for this very process to listen, and what fails meanwhile is tried
// again.
func (m *machine) checkFiles(ctx context.Context, c *config.Files, objects *s3objects.Bucket) error {
	if err := m.objects.Check(ctx, c.To.Bucket); err != nil && ctx.Err() == nil && !errors.Is(err, bucket.ErrUnavailable) {
		return err
	}
	doubts, err := objects.Prove(ctx, c.To.Prefix)
	for _, doubt := range doubts {
		m.log.Warn("the object store is fit for files, but", "doubt", doubt)
	}
	switch {
	case errors.Is(err, s3objects.ErrForgeable):
		return m.config.At("files", fmt.Errorf("%w: use a store that checks signatures; or put a proxy before the store that refuses this header, "+
			"give the service a key that may write below its prefix alone, and set accept_forgeable_uploads: true (docs/FILES.md)", err))
	case errors.Is(err, s3objects.ErrUnfit):
		return err
	case err != nil && ctx.Err() == nil:
		m.log.Warn("the object store could not be proved fit yet; starting all the same, and proving it before the first upload", "error", err)
	}
	return nil
}

// beside returns a path that counts from the folder of the configuration.
func (m *machine) beside(path string) string {
	if filepath.IsAbs(path) {
		return path
	}
	return filepath.Join(filepath.Dir(m.config.Name()), path)
}

func (m *machine) fileObjects(c *config.Files) *s3objects.Bucket {
	objects := s3objects.New(m.objects.Client(), c.To.Bucket, c.PublicEndpoint)
	if c.AcceptForgeableUploads {
		objects.AcceptForgeable()
	}
	if c.InlineTypes != nil {
		objects.Inline(c.InlineTypes)
	}
	return objects
}

// fileService opens the index, and makes it if it is not there and may be made.
func (m *machine) fileService(ctx context.Context, c *config.Files, objects files.Objects, create bool) (*files.Service, error) {
	if strings.ContainsAny(c.To.Prefix, "%?#") {
		return nil, m.config.At("files.to", fmt.Errorf("the prefix %q has %%, ? or #, which clients and proxies read as part of a URL: choose another", c.To.Prefix))
	}
	times := files.DefaultTimes()
	times.Upload = cmp.Or(time.Duration(c.LongestUpload), times.Upload)
	limit := files.Usage{Bytes: cmp.Or(int64(c.Quota), 10<<30), Open: cmp.Or(int64(c.OpenUploads), 1000)}
	records, err := m.fileRecords(ctx, c, create)
	if err != nil {
		return nil, m.config.At("files.index", err)
	}
	index := files.NewIndex(records)
	index.Logger = m.log
	return &files.Service{
		Index: index, Objects: objects,
		Times: times, Prefix: c.To.Prefix, Limit: func(string) files.Usage { return limit },
		Logger: m.log,
	}, nil
}

// fileRecords opens the store of the index: in a file, or in PostgreSQL if the
// configuration says so or the ledger is there. With create it makes what is missing.
func (m *machine) fileRecords(ctx context.Context, c *config.Files, create bool) (store.Store, error) {
	at := c.Index.Reveal()
	if ledger, ok := m.config.Ledger.Config.(parts.Postgres); ok && at == "" {
		at = ledger.URL
	}
	switch scheme, _, named := strings.Cut(at, "://"); {
	case named && (scheme == "postgres" || scheme == "postgresql"):
		if !create {
			if err := closed(postgres.OpenReadOnly(ctx, at)); err != nil {
				return nil, err
			}
		}
		return postgres.Open(ctx, at)
	case named: // its text may have a password
		return nil, errors.New("is no URL of a database of PostgreSQL: write postgres://user:password@host:5432/database, or the name of a file")
	}
	path := m.beside(cmp.Or(at, "files.db"))
	if !create {
		err := closed(sqlite.OpenReadOnly(ctx, path))
		if errors.Is(err, fs.ErrNotExist) {
			return nil, fmt.Errorf("there is no index in %s: \"pawl files serve\" makes it; or name another configuration with --config", path)
		}
		if err != nil {
			return nil, err
		}
	}
	return sqlite.Open(ctx, path)
}

// closed closes a store that was opened to see whether it exists.
func closed[S store.Store](s S, err error) error {
	if err == nil {
		err = s.Close()
	}
	return err
}

func (m *machine) filesHandler(ctx context.Context, c *config.Files, service *files.Service) (http.Handler, error) {
	tokens, err := m.filesTokens(ctx, c)
	if err != nil {
		return nil, err
	}
	size := cmp.Or(int64(c.MaxSize), 1<<30)
	if size > 5<<40 {
		return nil, errors.New("max_size: at most 5TiB")
	}
	return filesapi.New(filesapi.Config{
		Files: service, Tokens: tokens, Cursors: []byte(c.Secret.Reveal()), MaxSize: size, Logger: m.log, Spool: m.filesSpool(c),
	})
}

// filesSpool returns the folder for bodies of POST /v1/files: that of the index, for
// the system's temporary folder is often in memory.
func (m *machine) filesSpool(c *config.Files) string {
	dir := m.beside(".")
	if at := c.Index.Reveal(); at != "" && !strings.Contains(at, "://") {
		dir = filepath.Dir(m.beside(at))
	}
	f, err := os.CreateTemp(dir, "pawl-upload-*")
	if err != nil {
		m.log.Warn("bodies of POST /v1/files are kept in the system's temporary folder", "error", err)
		return ""
	}
	if err := errors.Join(f.Close(), os.Remove(f.Name())); err != nil {
		m.log.Warn("a temporary file stays", "error", err)
	}
	return dir
}

// filesTokens returns what verifies tokens, until ctx ends.
func (m *machine) filesTokens(ctx context.Context, c *config.Files) (*filesapi.Tokens, error) {
	claims := filesapi.Claims{Audience: c.Audience, Issuer: c.Issuer}
	if strings.Contains(c.Keys, "://") {
		tokens, err := filesapi.NewTokensAt(ctx, c.Keys, claims, nil, m.log)
		if err != nil {
			return nil, fmt.Errorf("keys: %w", err)
		}
		return tokens, nil
	}
	keys, err := m.filesKeys(c)
	if err != nil {
		return nil, err
	}
	return filesapi.NewTokens(keys, claims)
}

func (m *machine) filesKeys(c *config.Files) (jwk.Set, error) {
	if c.Keys == "" {
		return filesapi.Secret([]byte(c.Secret.Reveal()))
	}
	text, err := os.ReadFile(m.beside(c.Keys))
	if err != nil {
		return nil, fmt.Errorf("keys: %w", err)
	}
	set, err := jwk.Parse(text)
	if err != nil {
		return nil, fmt.Errorf("keys: %s is no JSON Web Key Set: %w", c.Keys, err)
	}
	return set, nil
}

// filesPipeline looks at a file at each notification of its object. What fails is
// never the object's fault.
func filesPipeline(c *config.Files, service *files.Service) pawl.Pipeline {
	look := func(ctx context.Context, t *pawl.Task) error {
		id, ours := service.ID(t.Object.Key)
		if !ours {
			return nil
		}
		_, err := service.Look(ctx, id, true)
		if err == nil || errors.Is(err, files.ErrNotFound) {
			return nil
		}
		return pawl.Outage(err)
	}
	return pawl.Pipeline{
		Name: "files", Match: pawl.Match{Bucket: c.To.Bucket, Prefix: c.To.Prefix}, EveryRaise: true, Handler: pawl.HandlerFunc(look),
	}
}

const (
	// filesSweep is how often files are looked at whose time has come.
	filesSweep = 10 * time.Second
	// filesAtOnce is how many of them are looked at at a time.
	filesAtOnce = 16
)

// serveFiles serves clients, notifications and timers until ctx ends or one of them
// fails.
func (m *machine) serveFiles(ctx context.Context, service *files.Service, handler http.Handler, p *pawl.Pawl) error {
	c := m.config.Files
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", cmp.Or(c.Listen, "127.0.0.1:8090"))
	if err != nil {
		return m.config.At("files.listen", err)
	}
	server := &http.Server{
		Handler: handler, ReadHeaderTimeout: 10 * time.Second, IdleTimeout: 2 * time.Minute,
		ErrorLog: slog.NewLogLogger(m.log.Handler(), slog.LevelWarn),
	}
	m.log.Info("files are served", "address", "http://"+listener.Addr().String(), "to", place(c.To.Bucket, c.To.Prefix))
	g, ctx := errgroup.WithContext(ctx)
	g.Go(func() error {
		if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
			return err
		}
		return nil
	})
	g.Go(func() error {
		<-ctx.Done()
		end, cancel := context.WithTimeout(context.WithoutCancel(ctx), 20*time.Second)
		defer cancel()
		return errors.Join(server.Shutdown(end), server.Close())
	})
	g.Go(func() error { return p.Run(ctx) })
	g.Go(func() error { m.sweepFiles(ctx, service); return nil })
	g.Go(func() error { m.keepAuditing(ctx, c, service); return nil })
	return g.Wait()
}

// sweepFiles looks at files whose time has come, until ctx ends.
func (m *machine) sweepFiles(ctx context.Context, service *files.Service) {
	sweeper := &files.Sweeper{Service: service, AtOnce: filesAtOnce}
	tick := time.NewTicker(filesSweep)
	defer tick.Stop()
	for {
		if _, err := sweeper.Round(ctx); err != nil && ctx.Err() == nil {
			m.log.Warn("some files whose time has come were not looked at", "error", err)
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}
