package doctorcmd

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/pawlhq/pawl/bucket"
	"github.com/pawlhq/pawl/cmd/pawl/app"
	"github.com/pawlhq/pawl/doctor"
	"github.com/pawlhq/pawl/event"
	"github.com/pawlhq/pawl/lock"
)

// checkMaxAge is the age at which a successful check of a store expires.
const checkMaxAge = 7 * 24 * time.Hour

// Uses for which the command checks a store.
const (
	useLocks    = "locks"    // locks and updates
	useListings = "listings" // semaphores and shared locks
)

// ErrUnsafe is returned if doctor found that a store is not safe for a feature.
var ErrUnsafe = errors.New("not safe")

// cleanUpTime is the time that a cancelled proof has to remove its object.
const cleanUpTime = 2 * time.Second

// proofTimeout bounds one attempt at a proof. If the responses of an attempt are lost, the
// caller can try again.
const proofTimeout = time.Minute

var errProofTimeout = fmt.Errorf("%w: no response within %v", bucket.ErrUnavailable, proofTimeout)

// OpenProven returns the bucket of an object after it has checked that the store is safe for
// locks and updates. It either sends test requests or reads a stored result. If listing is set,
// it is the name of a feature that needs listings, and OpenProven also rejects a store whose
// listings doctor has found stale. OpenProven returns at most 2 s after ctx ended.
func OpenProven(ctx context.Context, a *app.App, endpoint string, o event.Object, listing string) (*lock.Bucket, error) {
	ctx, stop := context.WithTimeoutCause(ctx, proofTimeout, errProofTimeout)
	defer stop()
	type proof struct {
		bucket *lock.Bucket
		err    error
	}
	done := make(chan proof, 1)
	go func() {
		b, err := prove(ctx, a, endpoint, o, listing)
		done <- proof{b, err}
	}()
	select {
	case p := <-done:
		return p.bucket, p.err
	case <-ctx.Done():
	}
	select {
	case p := <-done:
		return p.bucket, p.err
	case <-time.After(cleanUpTime):
		return nil, fmt.Errorf("checking whether the store of %s honours preconditions: %w", o, context.Cause(ctx))
	}
}

// prove tests the store unless a stored result exists. It writes test objects next to the
// object.
func prove(ctx context.Context, a *app.App, endpoint string, o event.Object, listing string) (*lock.Bucket, error) {
	store, err := a.Store(ctx, endpoint)
	if err != nil {
		return nil, err
	}
	c := storeCheck{store.Endpoint(), o.Bucket}
	if fit, err := c.allows(endpoint, listing); err != nil {
		return nil, err
	} else if fit {
		return lock.Proved(store, o.Bucket), nil
	}
	b, err := lock.Open(ctx, store, o.Bucket, o.Key[:strings.LastIndex(o.Key, "/")+1])
	switch {
	case err == nil:
		// In the meantime, doctor may have rejected the store in another process.
		if _, err := c.allows(endpoint, listing); err != nil {
			return nil, err
		}
		c.save(useLocks, "", time.Now())
	case ctx.Err() != nil:
		err = fmt.Errorf("checking whether the store of %s honours preconditions: %w", o, err)
	}
	return b, err
}

// storeCheck identifies the saved check results of one bucket at one endpoint. The user's cache folder has a
// file for each use, with the time of the check and the reason if the store is not safe.
type storeCheck struct{ endpoint, bucket string } // an empty endpoint is Amazon S3

// allows reports whether a stored result says that the store is safe for locks. If doctor
// rejected the store for locks, the error matches ErrUnsafe. If listing is set, it is the name
// of a feature that needs listings, and the error also matches ErrUnsafe if doctor rejected the
// store for listings.
func (c storeCheck) allows(endpoint, listing string) (fit bool, err error) {
	what := "locks and updates"
	at, why, fit := c.load(useLocks, time.Now())
	if why == "" && listing != "" {
		what = listing
		at, why, _ = c.load(useListings, time.Now())
	}
	if why == "" {
		return fit, nil
	}
	in, again := event.Quote("s3://"+c.bucket), "pawl doctor "
	if endpoint != "" {
		again += "--endpoint " + event.Quote(endpoint) + " "
	}
	return false, fmt.Errorf("%s: %s are %w: %s (found by \"pawl doctor\" on %s): after the store is repaired, run %s",
		in, what, ErrUnsafe, why, at.Format(time.DateOnly), again+in)
}

// update stores the result of an examination. An unclear result discards an earlier success
// and keeps an earlier rejection.
func (c storeCheck) update(r *doctor.Report) (err error) {
	for use, judge := range map[string]func() (doctor.Safety, string){useLocks: r.Locks, useListings: r.Listings} {
		safety, why := judge()
		_, _, fit := c.load(use, time.Now())
		switch {
		case safety != "":
			c.save(use, why, time.Now())
		case fit:
			c.save(use, "", time.Time{}) // a zero time marks the success as expired
		}
		if _, _, fit := c.load(use, time.Now()); fit && safety != doctor.Safe {
			name, nameErr := c.file(use)
			err = errors.Join(err, nameErr, fmt.Errorf("the stored check of %s is no longer valid: remove the file %s", event.Quote("s3://"+c.bucket), name))
		}
	}
	return err
}

func (c storeCheck) file(use string) (string, error) {
	dir, err := os.UserCacheDir()
	if err != nil {
		return "", err
	}
	sum := sha256.Sum256([]byte(c.endpoint + "\n" + c.bucket))
	return filepath.Join(dir, "pawl", "stores", hex.EncodeToString(sum[:16])+"-"+use), nil
}

// load reads a stored result. fit is true if the store is safe and the result has not expired.
// why is the reason of a rejection, which does not expire. load ignores unreadable and
// incomplete files.
func (c storeCheck) load(use string, now time.Time) (at time.Time, why string, fit bool) {
	name, err := c.file(use)
	if err != nil {
		return time.Time{}, "", false
	}
	b, err := os.ReadFile(name)
	line, whole := strings.CutSuffix(string(b), "\n")
	date, why, _ := strings.Cut(line, " ")
	at, parseErr := time.Parse(time.RFC3339, date)
	if err != nil || !whole || parseErr != nil {
		return time.Time{}, "", false
	}
	age := now.Sub(at)
	return at, why, why == "" && age >= 0 && age < checkMaxAge
}

// save stores a success, or the reason of a rejection. It ignores errors, because the next
// command then tests the store again.
func (c storeCheck) save(use, why string, now time.Time) {
	name, err := c.file(use)
	if err == nil && os.MkdirAll(filepath.Dir(name), 0o700) == nil {
		line := strings.TrimSpace(now.UTC().Format(time.RFC3339)+" "+why) + "\n"
		_ = os.WriteFile(name, []byte(line), 0o600)
	}
}
