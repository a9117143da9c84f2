// Package parts has the parts that pawl.yaml can name: ledgers, sources and
// actions. [Table] lists their kinds. Each kind has a struct for what the file
// says of it, with a method for each thing that commands do with a part.
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

// Table lists all kinds, in the order of the documentation.
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

// Ledger is what the file says of a ledger.
type Ledger interface {
	// Open opens the ledger, and makes it if it is not there.
	Open(ctx context.Context) (store.Store, error)
	// OpenReadOnly opens a ledger that is there for reading. It makes and upgrades
	// nothing.
	OpenReadOnly(ctx context.Context) (store.Store, error)
	// CheckExists returns an error if the ledger is not there, or only exists within
	// the process that works with it: a command that does no work then has
	// nothing to open. The error says what to do. Of a ledger that cannot be
	// reached Open tells.
	CheckExists(ctx context.Context) error
	// Describe says where the ledger is, without secrets.
	Describe() string
}

// Checker is a [Ledger] whose server can be examined.
type Checker interface {
	// Check examines the server without changing anything. skew is how far clocks
	// may be apart. An error says that it cannot be examined.
	Check(ctx context.Context, skew time.Duration) ([]Finding, error)
}

// Finding is one thing that was looked at.
type Finding = store.Finding

// Creator is a [Ledger] that a person makes, because its owner pays for it.
type Creator interface {
	// Create makes the ledger, unless it is there.
	Create(ctx context.Context) error
}

// Migrator is a [Ledger] whose tables a person may make.
type Migrator interface {
	// Script returns the statements.
	Script() string
}

// Source is what the file says of a source.
type Source interface {
	// Build makes the source. A source that declares its dialect is a
	// source.Declarer.
	Build(ctx context.Context, a *Assembly) (pawl.Source, error)
	// Describe says where notifications come from, without secrets.
	Describe() string
}

// Queue is a [Source] that limits the size of messages.
type Queue interface {
	Source
	// MaxMessage returns the size in bytes above which the queue rejects a message, and
	// the size of the longest message that the store sends. The error says why the first
	// is not known.
	MaxMessage(ctx context.Context, a *Assembly) (size, needed int64, err error)
}

// Action is what the file says of an action.
type Action interface {
	// Build gives a pipeline its handler and, if it has one, its output.
	Build(ctx context.Context, a *Assembly, p *pawl.Pipeline) error
}

// Assembly is what a source or an action is built with, besides what the file
// says of it.
type Assembly struct {
	Logger  *slog.Logger
	Objects bucket.Store
	// Ledger returns the ledger of the pipelines, which its owner closes.
	Ledger func(ctx context.Context) (store.Store, error)
	// Dir is the folder of the configuration file.
	Dir string
	// ShutdownTimeout is how long running work may take at shutdown; 0 is the default.
	ShutdownTimeout time.Duration
}

// The functions below let the compiler check the lines of the table.

func ledgerKind[L Ledger](name, form string, parse func(rest, dir string) (L, error)) config.LedgerKind {
	return config.LedgerKind{Name: name, Form: form, Parse: func(rest, dir string) (any, error) { return parse(rest, dir) }}
}

func source(name string, s Source) config.Kind { return config.Kind{Name: name, Config: s} }

func action(name string, a Action) config.Kind { return config.Kind{Name: name, Config: a} }

// output returns where a pipeline's output goes, or nil if it has none.
func output(to config.Location, suffix string) *pawl.Output {
	if to.IsZero() {
		return nil
	}
	return &pawl.Output{Bucket: to.Bucket, Prefix: to.Prefix, Suffix: suffix}
}
