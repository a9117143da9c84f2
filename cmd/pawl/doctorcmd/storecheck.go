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

const checkMaxAge = 7 * 24 * time.Hour

const (
	useLocks    = "locks"    // locks and updates
	useListings = "listings" // semaphores and shared locks
)

// ErrUnsafe: doctor found that a store is not safe for a feature.
var ErrUnsafe = errors.New("not safe")

// A cancelled proof may take this long to remove its object.
const cleanUpTime = 2 * time.Second

// proofTimeout bounds one attempt. The caller can try again.
const proofTimeout = time.Minute

var errProofTimeout = fmt.Errorf("%w: no response within %v", bucket.ErrUnavailable, proofTimeout)

// OpenProven returns the bucket of an object if its store is safe for locks and updates, by a test or a
// stored result. If listing, the name of a feature, is set, it also rejects a store with stale listings.
// OpenProven returns at most 2 s after ctx ended.
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

// prove writes test objects next to the object unless a stored result exists.
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
		// Doctor may have rejected the store meanwhile, in another process.
		if _, err := c.allows(endpoint, listing); err != nil {
			return nil, err
		}
		c.save(useLocks, "", time.Now())
	case ctx.Err() != nil:
		err = fmt.Errorf("checking whether the store of %s honours preconditions: %w", o, err)
	}
	return b, err
}

// storeCheck identifies the saved results of one bucket at one endpoint. The user's cache folder has a file
// for each use, with the time of the check and the reason of a rejection.
type storeCheck struct{ endpoint, bucket string } // an empty endpoint is Amazon S3

// allows reads the saved results. fit is true if the store is safe for locks. A rejection for locks, or for
// listings if listing is set, is an error that matches ErrUnsafe.
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

// An unclear result discards an earlier success and keeps an earlier rejection.
func (c storeCheck) update(r *doctor.Report) (err error) {
	for use, judge := range map[string]func() (doctor.Safety, string){useLocks: r.Locks, useListings: r.Listings} {
		safety, why := judge()
		_, _, fit := c.load(use, time.Now())
		switch {
		case safety != "":
			c.save(use, why, time.Now())
		case fit:
			c.save(use, "", time.Time{}) // the success has expired
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

// load reads a saved result. fit is true if the store is safe and the result has not expired. why is the
// reason of a rejection, which does not expire. load ignores unreadable and incomplete files.
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

// save ignores errors, because the next command then tests the store again.
func (c storeCheck) save(use, why string, now time.Time) {
	name, err := c.file(use)
	if err == nil && os.MkdirAll(filepath.Dir(name), 0o700) == nil {
		line := strings.TrimSpace(now.UTC().Format(time.RFC3339)+" "+why) + "\n"
		_ = os.WriteFile(name, []byte(line), 0o600)
	}
}
