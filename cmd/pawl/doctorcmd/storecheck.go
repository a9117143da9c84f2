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

// checkedAge is for how long a store is believed to be fit after it was checked.
const checkMaxAge = 7 * 24 * time.Hour

// What a store is checked for.
const (
	useLocks    = "locks"    // locks and updates
	useListings = "listings" // semaphores and shared locks
)

// errUnsafe: doctor has found that what is to be done cannot rely on a store.
var ErrUnsafe = errors.New("not safe there")

// cleanTime is what a proof that was given up has left to remove its object.
const cleanUpTime = 2 * time.Second

// proofTime is what a proof may take, so that one whose answers are lost is begun
// again.
const proofTimeout = time.Minute

var errProofTimeout = fmt.Errorf("%w: it has not answered in the %v that a proof may take", bucket.ErrUnavailable, proofTimeout)

// OpenProven returns the bucket of an object, once its store is known to honour what
// locks and updates rely on, and not known to fail those features of doctor's that
// need its listings. A store that is silent does not keep it for long when ctx has
// ended.
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
		return nil, fmt.Errorf("looking whether the store of %s honours preconditions: %w", o, context.Cause(ctx))
	}
}

// prove proves the store, unless it was checked. It writes beside the object.
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
		// Another process's doctor may have refused the store meanwhile.
		if _, err := c.allows(endpoint, listing); err != nil {
			return nil, err
		}
		c.save(useLocks, "", time.Now())
	case ctx.Err() != nil:
		err = fmt.Errorf("looking whether the store of %s honours preconditions: %w", o, err)
	}
	return b, err
}

// checked is a bucket whose checks are kept in the user's cache folder: a file for each
// use, with the time of the check and, if the store is not fit, the reason.
type storeCheck struct{ endpoint, bucket string } // endpoint: empty is Amazon's

// allows reports whether the store was checked to be fit for locks. The error matches
// errUnsafe if doctor has refused it for them, or for the feature that needs listings, if
// there is one.
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
	return false, fmt.Errorf("%s: %s are %w: %s, as \"pawl doctor\" found on %s: when it is mended, run %s",
		in, what, ErrUnsafe, why, at.Format(time.DateOnly), again+in)
}

// renew keeps what an examination found. If that is unclear, an earlier check that found
// the store fit is dropped, and a refusal stays.
func (c storeCheck) update(r *doctor.Report) (err error) {
	for use, judge := range map[string]func() (doctor.Safety, string){useLocks: r.Locks, useListings: r.Listings} {
		safety, why := judge()
		_, _, fit := c.load(use, time.Now())
		switch {
		case safety != "":
			c.save(use, why, time.Now())
		case fit:
			c.save(use, "", time.Time{}) // too old to be believed
		}
		if _, _, fit := c.load(use, time.Now()); fit && safety != doctor.Safe {
			name, nameErr := c.file(use)
			err = errors.Join(err, nameErr, fmt.Errorf("an earlier check of %s would be believed still: remove the file %s", event.Quote("s3://"+c.bucket), name))
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

// known returns when and why a store was refused, or whether it was found fit not long
// ago. A file that cannot be read, or was not written to its end, says nothing.
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

// keep keeps that a store is fit, or why it is not. If that fails, the next command
// proves the store again.
func (c storeCheck) save(use, why string, now time.Time) {
	name, err := c.file(use)
	if err == nil && os.MkdirAll(filepath.Dir(name), 0o700) == nil {
		line := strings.TrimSpace(now.UTC().Format(time.RFC3339)+" "+why) + "\n"
		_ = os.WriteFile(name, []byte(line), 0o600)
	}
}
