// Package parts contains the parts that pawl.yaml can name: ledgers, sources and
// actions. [Table] lists their kinds. Each kind is a struct with the fields of its
// configuration, and with methods that build the part.
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

// Ledger is the configuration of a ledger.
type Ledger interface {
	// Open opens the ledger, and creates it if it is missing.
	Open(ctx context.Context) (store.Store, error)
	// OpenReadOnly opens an existing ledger for reading. It creates and upgrades
	// nothing.
	OpenReadOnly(ctx context.Context) (store.Store, error)
	// CheckExists returns an error with a remedy if the ledger is missing, or exists only in
	// the memory of another process. It does not connect to a server. Open and OpenReadOnly
	// return an error if the server is unreachable.
	CheckExists(ctx context.Context) error
	// Describe returns the location of the ledger, without secrets.
	Describe() string
}

// Checker is a [Ledger] on a server.
type Checker interface {
	// Check checks the server without changing it. The parameter skew is the largest allowed
	// clock difference. Check returns an error if it cannot reach the server.
	Check(ctx context.Context, skew time.Duration) ([]Finding, error)
}

// Finding is the result of one check.
type Finding = store.Finding

// Creator is a [Ledger] that only an operator creates, because it incurs costs.
type Creator interface {
	// Create creates the ledger if it is missing.
	Create(ctx context.Context) error
}

// Migrator is a [Ledger] whose tables an operator can create with SQL.
type Migrator interface {
	// Script returns the SQL statements.
	Script() string
}

// Source is the configuration of a source.
type Source interface {
	// Build returns the source. A source with a fixed dialect implements
	// source.Declarer.
	Build(ctx context.Context, a *Assembly) (pawl.Source, error)
	// Describe returns the address of the source, without secrets.
	Describe() string
}

// Queue is a [Source] that limits the size of messages.
type Queue interface {
	Source
	// MaxMessage returns the queue's maximum message size, and the size of the longest message
	// that the store sends. Both are in bytes. MaxMessage returns an error if it cannot
	// determine the queue's limit.
	MaxMessage(ctx context.Context, a *Assembly) (size, needed int64, err error)
}

// Action is the configuration of an action.
type Action interface {
	// Build sets the handler of a pipeline and, if the action has one, its output.
	Build(ctx context.Context, a *Assembly, p *pawl.Pipeline) error
}

// Assembly holds the dependencies of sources and actions.
type Assembly struct {
	Logger  *slog.Logger
	Objects bucket.Store
	// Ledger returns the ledger of the pipelines. The caller must not close it.
	Ledger func(ctx context.Context) (store.Store, error)
	// Dir is the folder of the configuration file.
	Dir string
	// ShutdownTimeout bounds the shutdown; 0 selects the default.
	ShutdownTimeout time.Duration
}

// The functions below let the compiler check the types in the table.

func ledgerKind[L Ledger](name, form string, parse func(rest, dir string) (L, error)) config.LedgerKind {
	return config.LedgerKind{Name: name, Form: form, Parse: func(rest, dir string) (any, error) { return parse(rest, dir) }}
}

func source(name string, s Source) config.Kind { return config.Kind{Name: name, Config: s} }

func action(name string, a Action) config.Kind { return config.Kind{Name: name, Config: a} }

// output returns a pipeline's output, or nil if it has none.
func output(to config.Location, suffix string) *pawl.Output {
	if to.IsZero() {
		return nil
	}
	return &pawl.Output{Bucket: to.Bucket, Prefix: to.Prefix, Suffix: suffix}
}
