package archive

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"time"

	"github.com/go-json-experiment/json"

	"github.com/pawlhq/pawl/bucket"
	"github.com/pawlhq/pawl/cell"
	"github.com/pawlhq/pawl/event"
	"github.com/pawlhq/pawl/ledger"
)

// Config describes an archive: its stream, its bucket, and its format. Name, Bucket,
// Stream, Store, Registers and Codec are required.
type Config struct {
	// Name is the name of the archive's registers: see [CheckName].
	Name string
	// Bucket and Prefix are the place of the objects. A Prefix ends with a slash.
	Bucket, Prefix string
	// Format is the format of new objects. Default "ndjson.gz".
	Format string
	// Origin is the beginning of the archive: the first entries that arrived then or
	// later. Zero: the oldest that the stream keeps. An existing claim file overrides it.
	Origin time.Time
	// Limits complete an object. Default 16 MiB and one minute.
	Limits Limits
	// Lease is the TTL of a shard's lease, 1 s to 24 h. Default 30 s. Another worker takes
	// over the shards of a dead one after 1.05 to 1.15 times the Lease.
	Lease time.Duration
	// ShutdownTimeout bounds the time for leaving the shards when a worker ends. Default 20 s.
	ShutdownTimeout time.Duration
	// Owner names this worker, for people. Default host:pid.
	Owner string

	Stream    Stream
	Store     Store
	Registers ledger.Registers
	Codec     Codec
	Logger    *slog.Logger // default slog.Default()
	// Observe is called with each object that this worker has stored. Optional.
	Observe func(shard string, o Planned)

	Now   func() time.Time                                 // default time.Now
	Sleep func(ctx context.Context, d time.Duration) error // default: a timer; an error if ctx ends first
	Nonce func() string                                    // default 128 random bits
}

// Codec turns entries into the bytes of an object, and back.
type Codec interface {
	// Knows reports that a format can be written and read.
	Knows(format string) bool
	// Encode returns the bytes of an object. Without entries it returns a valid
	// file without a record.
	Encode(format, shard string, records []Record) ([]byte, error)
	Decode(format, shard string, body []byte) ([]Record, error)
}

// Store is what an archive needs of an object store.
type Store interface {
	bucket.Store
	bucket.Expirer
}

// Archive is a stream in a bucket. [New] returns one. Its methods are safe for concurrent
// use if those of its parts are. A [Runner] stores records in it.
type Archive struct {
	Config

	oneByOne   bool     // tests send no two requests at the same time
	emptySizes sync.Map // of files without a record, in bytes, by format
	health     health
}

// signedFor is how long a PUT may begin after it was signed. It is signed with the store's
// clock and before the register write, so by the store's clock it begins at most signedFor
// after that write was sent, however wrong this machine's clock is.
const signatureValidity = 5 * time.Minute

// uploadTime bounds one upload, as [bucket.Expirer] says.
const maxUploadTime = signatureValidity

func (a *Archive) register(parts ...string) cell.Cell {
	return ledger.Cell(a.Registers, a.registerName(parts...))
}

func (a *Archive) registerName(parts ...string) string {
	return "archive/" + a.Name + "/" + strings.Join(parts, "/")
}

func (a *Archive) object(key string) event.Object { return event.Object{Bucket: a.Bucket, Key: key} }

// replace writes a body into a cell that carries version, and settles by the nonce
// in it what became of a write without a clear answer. It is resent unchanged.
func (a *Archive) replace(ctx context.Context, c cell.Cell, version string, body []byte, nonce string) (next string, err error) {
	w := cell.Replace(c, &version, body, func(b []byte) bool { return nonceOf(b) == nonce })
	w.Pace = a.pace
	for {
		fate, err := w.Run(ctx)
		switch {
		case err == nil:
			return version, nil
		case fate == cell.Lost && errors.Is(err, cell.ErrPrecondition):
			return "", fmt.Errorf("%w: %s has changed", ErrStale, c)
		case errors.Is(err, cell.ErrUnavailable) && ctx.Err() == nil && a.pace(ctx, 1, err) == nil:
			continue // only the look failed
		}
		return "", fmt.Errorf("writing %s: %w", c, err)
	}
}

// pace waits before a request is sent again. It warns now and then, for nothing is
// stored meanwhile.
func (a *Archive) pace(ctx context.Context, try int, answer error) error {
	if try%failedRequestsPerTry == 0 {
		a.health.fail(a.Now(), a.Lease)
	}
	if try%8 == 4 {
		a.Logger.Warn("a request keeps failing; retrying until it succeeds", "archive", a.Name, "error", answer)
	}
	if err := a.Sleep(ctx, min(100*time.Millisecond<<min(try, 8), 5*time.Second)); err != nil {
		return fmt.Errorf("%w: %w", answer, err)
	}
	return nil
}

// read reads a cell, and asks again while it gives no answer.
func (a *Archive) read(ctx context.Context, c cell.Cell) (cell.Value, error) {
	for try := 1; ; try++ {
		v, err := c.Read(ctx)
		if err == nil || !errors.Is(err, cell.ErrUnavailable) || ctx.Err() != nil {
			return v, err
		}
		if err := a.pace(ctx, try, err); err != nil {
			return v, err
		}
	}
}

func nonceOf(body []byte) string {
	var head struct {
		Nonce string `json:"nonce"`
	}
	_ = json.Unmarshal(body, &head) // what is no JSON has no nonce of ours
	return head.Nonce
}
