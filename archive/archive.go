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

// Config configures an archive. Name, Bucket, Stream, Store, Registers and Codec are required.
type Config struct {
	// Name identifies the archive in the ledger; see [CheckName].
	Name string
	// A non-empty Prefix ends with a slash.
	Bucket, Prefix string
	Format         string // of new objects; default "ndjson.gz"
	// Origin is the earliest arrival time of records that a new archive stores. Zero means the
	// oldest record in the stream. An existing claim file overrides it.
	Origin time.Time
	// Limits determine when an object is complete. Default 16 MiB and one minute.
	Limits Limits
	// Lease is the TTL of a shard's lease, 1 s to 24 h. Default 30 s. Other workers take over from
	// a dead worker after 1.05 to 1.15 times Lease.
	Lease time.Duration
	// ShutdownTimeout is the time limit for the release of all shards. Default 20 s.
	ShutdownTimeout time.Duration
	// Owner names this worker in registers and logs. Default host:pid.
	Owner string

	Stream    Stream
	Store     Store
	Registers ledger.Registers
	Codec     Codec
	Logger    *slog.Logger // default slog.Default()
	// Observe is called after each stored object. Optional.
	Observe func(shard string, o Planned)

	Now   func() time.Time                                 // default time.Now
	Sleep func(ctx context.Context, d time.Duration) error // returns an error if ctx ends first; default: a timer
	Nonce func() string                                    // default 128 random bits
}

// Codec encodes records as the content of an object, and decodes them.
type Codec interface {
	Knows(format string) bool
	// Encode returns the content of an object. Without records it returns a valid, empty file.
	Encode(format, shard string, records []Record) ([]byte, error)
	Decode(format, shard string, body []byte) ([]Record, error)
}

// Store is the object store of an archive.
type Store interface {
	bucket.Store
	bucket.Expirer
}

// Archive stores a stream in a bucket. It is safe for concurrent use if Stream, Store, Registers
// and Codec are.
type Archive struct {
	Config

	oneByOne   bool     // for tests: no requests in parallel
	emptySizes sync.Map // bytes of a file without records, by format
	health     health
	status     status
}

// signatureValidity is the time from the signature of a PUT to its expiry. The worker signs with
// the store's clock before it writes the register. A wrong clock of this machine therefore cannot
// prolong it.
const signatureValidity = 5 * time.Minute

// maxUploadTime bounds one upload; see [bucket.Expirer].
const maxUploadTime = signatureValidity

func (a *Archive) register(parts ...string) cell.Cell {
	return ledger.Cell(a.Registers, a.registerName(parts...))
}

func (a *Archive) registerName(parts ...string) string {
	return "archive/" + a.Name + "/" + strings.Join(parts, "/")
}

func (a *Archive) object(key string) event.Object { return event.Object{Bucket: a.Bucket, Key: key} }

// replace resolves ambiguous answers by the nonce in body.
func (a *Archive) replace(ctx context.Context, c cell.Cell, version string, body []byte, nonce string) (next string, err error) {
	w := cell.Replace(c, &version, body, func(b []byte) bool { return nonceOf(b) == nonce })
	w.Pace = a.pace
	for {
		outcome, err := w.Run(ctx)
		switch {
		case err == nil:
			return version, nil
		case outcome == cell.Lost && errors.Is(err, cell.ErrPrecondition):
			return "", fmt.Errorf("%w: %s has changed", ErrStale, c)
		case errors.Is(err, cell.ErrUnavailable) && ctx.Err() == nil && a.pace(ctx, 1, err) == nil:
			continue // only the read after the write failed
		}
		return "", fmt.Errorf("writing %s: %w", c, err)
	}
}

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

// read retries while the store is unavailable.
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
	_ = json.Unmarshal(body, &head) // a body that is not JSON has no nonce
	return head.Nonce
}
