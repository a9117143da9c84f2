package cli

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

	"github.com/pawlhq/pawl/cmd/pawl/config"
	"github.com/pawlhq/pawl/cmd/pawl/parts"
	"github.com/pawlhq/pawl/files"
	"github.com/pawlhq/pawl/files/filesapi"
	"github.com/pawlhq/pawl/files/s3objects"
	"github.com/pawlhq/pawl/files/server"
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
and looks at files whose time has come. It needs no ledger, and runs no pipelines.
SIGINT or SIGTERM ends it in order.`,
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
	m, err := a.configure(ctx, a.parts.Load, log)
	if err != nil {
		return err
	}
	c, err := m.filesConfig()
	if err != nil {
		return err
	}
	if len(m.config.Pipelines) > 0 {
		return errShared(m.config)
	}
	if c.Index, err = m.openIndex(ctx, true); err != nil {
		return m.config.At("files.index", err)
	}
	defer func() { err = errors.Join(err, c.Index.Close()) }()
	if c.Tokens, err = m.filesTokens(ctx); err != nil {
		return m.config.At("files", err)
	}
	c.Spool = m.filesSpool()
	if c.Sources, err = m.sources(ctx); err != nil {
		return err
	}
	s, err := server.New(c)
	if err != nil {
		return m.config.At("files", err)
	}
	return errForgeable(m.config, s.Run(ctx))
}

// errForgeable adds what to do about a store that accepts forged uploads.
func errForgeable(c *config.Config, err error) error {
	if !errors.Is(err, s3objects.ErrForgeable) {
		return err
	}
	return c.At("files", fmt.Errorf("%w: use a store that checks signatures; or put a proxy before the store that refuses this header, "+
		"give the service a key that may write below its prefix alone, and set accept_forgeable_uploads: true (docs/FILES.md)", err))
}

func errNoFiles(c *config.Config) error {
	return c.At("files", errors.New("is missing: say where files go (files: {to: s3://bucket/prefix/, secret: …})"))
}

// errShared: both programs would take messages from the same sources, and each message
// goes to one of them.
func errShared(c *config.Config) error {
	return c.At("files", errors.New("the file has pipelines, too, and a message of a source goes to one program: "+
		"give files a file of their own, with a source of their own"))
}

// filesConfig returns what the configuration says of the server, without what has to be
// opened.
func (m *machine) filesConfig() (server.Config, error) {
	c := m.config.Files
	if c == nil {
		return server.Config{}, errNoFiles(m.config)
	}
	if err := files.CheckPrefix(c.To.Prefix); err != nil {
		return server.Config{}, m.config.At("files.to", err)
	}
	return server.Config{
		Store: m.objects, Bucket: c.To.Bucket, Prefix: c.To.Prefix, Secret: []byte(c.Secret.Reveal()), Listen: c.Listen,
		Quota: files.Usage{Bytes: int64(c.Quota), Open: int64(c.OpenUploads)}, MaxSize: int64(c.MaxSize), LongestUpload: time.Duration(c.LongestUpload),
		PublicEndpoint: c.PublicEndpoint, InlineTypes: c.InlineTypes, AcceptForgeableUploads: c.AcceptForgeableUploads, Logger: m.log,
	}, nil
}

// beside returns a path that counts from the folder of the configuration.
func (m *machine) beside(path string) string {
	if filepath.IsAbs(path) {
		return path
	}
	return filepath.Join(filepath.Dir(m.config.Name()), path)
}

// openIndex opens the store of the index: in a file, or in PostgreSQL or DynamoDB if the
// configuration says so or the ledger is there. With create it makes what is missing,
// except a table of DynamoDB.
func (m *machine) openIndex(ctx context.Context, create bool) (store.Store, error) {
	at := m.config.Files.Index.Reveal()
	if ledger, ok := m.config.Ledger.Config.(parts.Postgres); ok && at == "" {
		at = ledger.URL
	}
	if ledger, ok := m.config.Ledger.Config.(parts.DynamoDB); ok && at == "" {
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
	case named && scheme == "dynamodb":
		return parts.DynamoDB{URL: at}.Open(ctx)
	case named: // its text may have a password
		return nil, errors.New("is no URL of a database: write postgres://user:password@host:5432/database, dynamodb://table?region=eu-central-1, or the name of a file")
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

// filesSpool returns the folder for bodies of POST /v1/files: that of the index, for
// the system's temporary folder is often in memory.
func (m *machine) filesSpool() string {
	dir := m.beside(".")
	if at := m.config.Files.Index.Reveal(); at != "" && !strings.Contains(at, "://") {
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
func (m *machine) filesTokens(ctx context.Context) (*filesapi.Tokens, error) {
	c := m.config.Files
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
