// Package filescmd contains the command files with its subcommands and its demo.
package filescmd

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/lestrrat-go/jwx/v3/jwk"
	"github.com/spf13/cobra"

	"github.com/pawlhq/pawl/cmd/pawl/app"
	"github.com/pawlhq/pawl/cmd/pawl/config"
	"github.com/pawlhq/pawl/cmd/pawl/parts"
	"github.com/pawlhq/pawl/files"
	"github.com/pawlhq/pawl/files/filesapi"
	"github.com/pawlhq/pawl/files/s3objects"
	"github.com/pawlhq/pawl/files/server"
	"github.com/pawlhq/pawl/metrics/prom"
	"github.com/pawlhq/pawl/store"
	"github.com/pawlhq/pawl/store/postgres"
	"github.com/pawlhq/pawl/store/sqlite"
)

// NewFilesCommand returns the command files.
func NewFilesCommand(a *app.App) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "files",
		Short: "Let clients upload files directly to a bucket, and keep an index of them",
		Long: `Files runs and maintains an API with which clients upload files directly to a bucket,
list them, delete them and restore them. An index lists the files, and the store's
notifications keep it up to date. See docs/FILES.md.`,
		Example: `  pawl files serve
  pawl files audit --dry-run
  pawl files demo`,
		Args: app.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(a.WithAdminFlag(&cobra.Command{
		Use:   "serve",
		Short: "Serve the API until interrupted",
		Long: `Serve runs the API, receives notifications from the configured sources, and
reconciles files whose timer is due. It needs no ledger and runs no pipelines.
SIGINT or SIGTERM shuts it down gracefully.`,
		Example: `  pawl files serve -c pawl.yaml
  pawl files serve --admin 127.0.0.1:8080`,
		Args: app.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return runServe(cmd.Context(), a) },
	}), newAuditCommand(a), newRebuildCommand(a), newTokenCommand(a), newDemoCommand(a))
	return cmd
}

func runServe(ctx context.Context, a *app.App) (err error) {
	log, err := a.Logger(a.Err, slog.LevelInfo)
	if err != nil {
		return err
	}
	ctx, stop := app.UntilSignal(ctx, log)
	defer stop()
	m, err := a.Configure(ctx, a.Parts.Load, log)
	if err != nil {
		return err
	}
	c, err := serverConfig(m)
	if err != nil {
		return err
	}
	if len(m.Config.Pipelines) > 0 {
		return app.ErrPipelinesWithFiles(m.Config)
	}
	if c.Index, err = openIndex(ctx, m, true); err != nil {
		return m.Config.At("files.index", err)
	}
	metrics := prom.NewFiles(app.ThisBuild().Version)
	metrics.WatchObjects(m.Objects)
	c.Index, c.Observer = metrics.Store(c.Index), metrics
	defer func() { err = errors.Join(err, c.Index.Close()) }()
	if c.Tokens, err = newTokens(ctx, m); err != nil {
		return m.Config.At("files", err)
	}
	c.Spool = spoolDir(m)
	if c.Sources, err = m.Sources(ctx); err != nil {
		return err
	}
	s, err := server.New(c)
	if err != nil {
		return m.Config.At("files", err)
	}
	mon := &monitor{server: s, index: c.Index}
	end, err := a.StartAdmin(ctx, m.Config, log, mon.status, metrics.Handler(), nil, mon.checkIndex)
	if err != nil {
		return err
	}
	defer end()
	defer app.ReportToSystemd(ctx, log, s.Ready)()
	return explainForgeable(m.Config, s.Run(ctx))
}

func explainForgeable(c *config.Config, err error) error {
	if !errors.Is(err, s3objects.ErrForgeable) {
		return err
	}
	return c.At("files", fmt.Errorf("%w: use a store that checks signatures; or put a proxy in front of the store that rejects this header, "+
		"give the service an access key that can write only below its prefix, and set accept_forgeable_uploads: true (docs/FILES.md)", err))
}

func errNotConfigured(c *config.Config) error {
	return c.At("files", errors.New("is missing: configure where files are stored (files: {to: s3://bucket/prefix/, secret: …})"))
}

func serverConfig(m *app.Runtime) (server.Config, error) {
	c := m.Config.Files
	if c == nil {
		return server.Config{}, errNotConfigured(m.Config)
	}
	if err := files.CheckPrefix(c.To.Prefix); err != nil {
		return server.Config{}, m.Config.At("files.to", err)
	}
	return server.Config{
		Store: m.Objects, Bucket: c.To.Bucket, Prefix: c.To.Prefix, Secret: []byte(c.Secret.Reveal()), Listen: c.Listen,
		Quota: files.Usage{Bytes: int64(c.Quota), Open: int64(c.OpenUploads)}, MaxSize: int64(c.MaxSize), LongestUpload: time.Duration(c.LongestUpload),
		PublicEndpoint: c.PublicEndpoint, InlineTypes: c.InlineTypes, AcceptForgeableUploads: c.AcceptForgeableUploads, Logger: m.Log,
	}, nil
}

func resolvePath(m *app.Runtime, path string) string {
	if filepath.IsAbs(path) {
		return path
	}
	return filepath.Join(filepath.Dir(m.Config.Name()), path)
}

// openIndex opens the index: a SQLite file, or the database of the configuration or of the ledger.
// If create is set, it creates missing files and tables, except a DynamoDB table.
func openIndex(ctx context.Context, m *app.Runtime, create bool) (store.Store, error) {
	at := m.Config.Files.Index.Reveal()
	if ledger, ok := m.Config.Ledger.Config.(parts.Postgres); ok && at == "" {
		at = ledger.URL
	}
	if ledger, ok := m.Config.Ledger.Config.(parts.DynamoDB); ok && at == "" {
		at = ledger.URL
	}
	switch scheme, _, named := strings.Cut(at, "://"); {
	case named && (scheme == "postgres" || scheme == "postgresql"):
		if !create {
			if err := closeStore(postgres.OpenReadOnly(ctx, at)); err != nil {
				return nil, err
			}
		}
		return postgres.Open(ctx, at)
	case named && scheme == "dynamodb":
		return parts.DynamoDB{URL: at}.Open(ctx)
	case named: // do not print the text, because it may contain a password
		return nil, errors.New("is not a database URL: use postgres://user:password@host:5432/database, dynamodb://table?region=eu-central-1, or a file name")
	}
	path := resolvePath(m, cmp.Or(at, "files.db"))
	if !create {
		err := closeStore(sqlite.OpenReadOnly(ctx, path))
		if errors.Is(err, fs.ErrNotExist) {
			return nil, fmt.Errorf("index %s does not exist: start \"pawl files serve\" to create it, or select another configuration with --config", path)
		}
		if err != nil {
			return nil, err
		}
	}
	return sqlite.Open(ctx, path)
}

func closeStore[S store.Store](s S, err error) error {
	if err == nil {
		err = s.Close()
	}
	return err
}

// spoolDir is the folder of the index, because the system's temporary folder is often in memory.
func spoolDir(m *app.Runtime) string {
	dir := resolvePath(m, ".")
	if at := m.Config.Files.Index.Reveal(); at != "" && !strings.Contains(at, "://") {
		dir = filepath.Dir(resolvePath(m, at))
	}
	f, err := os.CreateTemp(dir, "pawl-upload-*")
	if err != nil {
		m.Log.Warn("cannot buffer bodies of POST /v1/files in the folder of the index; using the system's temporary folder", "error", err)
		return ""
	}
	if err := errors.Join(f.Close(), os.Remove(f.Name())); err != nil {
		m.Log.Warn("could not remove a temporary file", "error", err)
	}
	return dir
}

// newTokens refreshes a remote key set until ctx ends.
func newTokens(ctx context.Context, m *app.Runtime) (*filesapi.Tokens, error) {
	c := m.Config.Files
	claims := filesapi.Claims{Audience: c.Audience, Issuer: c.Issuer}
	if strings.Contains(c.Keys, "://") {
		tokens, err := filesapi.NewTokensAt(ctx, c.Keys, claims, nil, m.Log)
		if err != nil {
			return nil, fmt.Errorf("keys: %w", err)
		}
		return tokens, nil
	}
	keys, err := loadKeys(m, c)
	if err != nil {
		return nil, err
	}
	return filesapi.NewTokens(keys, claims)
}

func loadKeys(m *app.Runtime, c *config.Files) (jwk.Set, error) {
	if c.Keys == "" {
		return filesapi.Secret([]byte(c.Secret.Reveal()))
	}
	text, err := os.ReadFile(resolvePath(m, c.Keys))
	if err != nil {
		return nil, fmt.Errorf("keys: %w", err)
	}
	set, err := jwk.Parse(text)
	if err != nil {
		return nil, fmt.Errorf("keys: %s is not a JSON Web Key Set: %w", c.Keys, err)
	}
	return set, nil
}
