// Package parts contains the ledgers, sources and actions that pawl.yaml can name. [Table] lists their
// kinds: structs with the fields of the configuration and methods that build the part.
package parts

import (
	"context"
	"log/slog"
	"time"

	"github.com/pawlhq/pawl"
	"github.com/pawlhq/pawl/bucket"
	"github.com/pawlhq/pawl/cmd/pawl/config"
	"github.com/pawlhq/pawl/store"
)

// Table lists the kinds in the order of the documentation.
var Table = &config.Table{
	Ledgers: []config.LedgerKind{
		ledgerKind("sqlite", "sqlite:FILE", parseSQLite),
		ledgerKind("postgres", "postgres://USER@HOST/DATABASE", parsePostgres),
		ledgerKind("dynamodb", "dynamodb://TABLE?region=REGION", parseDynamoDB),
		ledgerKind("memory", "memory", parseMemory),
	},
	Sources: []config.Kind{
		source("webhook", Webhook{}),
		source("sqs", SQS{}),
	},
	Actions: []config.Kind{
		action("image", Image{}),
		action("copy", Copy{}),
		action("exec", Exec{}),
		action("http", HTTP{}),
		action("load", Load{}),
	},
}

// Ledger is a configured ledger.
type Ledger interface {
	// Open creates the ledger if it is missing.
	Open(ctx context.Context) (store.Store, error)
	// OpenReadOnly creates and upgrades nothing.
	OpenReadOnly(ctx context.Context) (store.Store, error)
	// CheckExists returns an error with a remedy if the ledger is missing, or exists only in the memory of
	// another process. It does not connect to a server.
	CheckExists(ctx context.Context) error
	// Describe returns the location, without secrets.
	Describe() string
}

// Checker is a [Ledger] on a server.
type Checker interface {
	// Check changes nothing. skew is the largest allowed clock difference. An unreachable server is an
	// error.
	Check(ctx context.Context, skew time.Duration) ([]Finding, error)
}

// Finding is the result of one check.
type Finding = store.Finding

// Creator is a [Ledger] that an operator must create, because it incurs costs.
type Creator interface {
	Create(ctx context.Context) error
}

// Migrator is a [Ledger] whose tables an operator can create with SQL.
type Migrator interface {
	Script() string
}

// Source is a configured source.
type Source interface {
	// Build returns a source.Declarer if the dialect is fixed.
	Build(ctx context.Context, a *Assembly) (pawl.Source, error)
	// Describe returns the address, without secrets.
	Describe() string
}

// Queue is a [Source] that limits the size of messages.
type Queue interface {
	Source
	// MaxMessage returns the queue's maximum, and the size of the longest message that the store sends, in
	// bytes.
	MaxMessage(ctx context.Context, a *Assembly) (size, needed int64, err error)
}

// Action is a configured action.
type Action interface {
	// Build sets the handler and, if there is one, the output of p.
	Build(ctx context.Context, a *Assembly, p *pawl.Pipeline) error
}

// Assembly holds the dependencies of sources and actions.
type Assembly struct {
	Logger  *slog.Logger
	Objects bucket.Store
	// The caller must not close the Ledger.
	Ledger func(ctx context.Context) (store.Store, error)
	// Dir has the configuration file.
	Dir string
	// ShutdownTimeout is 0 for the default.
	ShutdownTimeout time.Duration
}

// With these functions, the compiler checks the types in the table.

func ledgerKind[L Ledger](name, form string, parse func(rest, dir string) (L, error)) config.LedgerKind {
	return config.LedgerKind{Name: name, Form: form, Parse: func(rest, dir string) (any, error) { return parse(rest, dir) }}
}

func source(name string, s Source) config.Kind { return config.Kind{Name: name, Config: s} }

func action(name string, a Action) config.Kind { return config.Kind{Name: name, Config: a} }

// output returns nil for a pipeline without one.
func output(to config.Location, suffix string) *pawl.Output {
	if to.IsZero() {
		return nil
	}
	return &pawl.Output{Bucket: to.Bucket, Prefix: to.Prefix, Suffix: suffix}
}
