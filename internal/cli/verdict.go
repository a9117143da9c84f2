package cli

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/pawlhq/pawl/bucket"
	"github.com/pawlhq/pawl/doctor"
	"github.com/pawlhq/pawl/event"
	"github.com/pawlhq/pawl/lock"
)

// verdictAge is for how long a store is believed to be what it was proved to be.
const verdictAge = 7 * 24 * time.Hour

// verdict is whether a store honours what locks and updates rely on.
type verdict struct {
	Endpoint string    `json:"endpoint,omitempty"` // empty: Amazon's
	Bucket   string    `json:"bucket"`
	Proved   time.Time `json:"proved,omitzero"` // or found to be Unsafe; zero: neither
	// Unsafe is what it does not honour, as doctor has found.
	Unsafe string `json:"unsafe,omitempty"`
	// Listings is what doctor has found of its listings, where they do not show what
	// was written. It outlasts the proofs of the rest.
	Listings *finding `json:"listings,omitempty"`
}

// finding is why something is not safe, and when doctor has found that.
type finding struct {
	Unsafe string    `json:"unsafe"`
	Found  time.Time `json:"found"`
}

// errUnsafe: doctor has found that what is to be done cannot rely on a store.
var errUnsafe = errors.New("not safe there")

// cleanTime is what a proof that was given up has left to remove its object.
const cleanTime = 2 * time.Second

// proofTime is what a proof may take, so that one whose answers are lost is begun
// again.
const proofTime = time.Minute

var errProofSilent = fmt.Errorf("%w: it has not answered in the %v that a proof may take", bucket.ErrUnavailable, proofTime)

// proved returns the bucket of an object, once its store is known to honour what
// locks and updates rely on, and not known to fail those features of doctor's that
// need its listings. A store that is silent does not keep it for long when ctx has
// ended.
func (a *app) proved(ctx context.Context, endpoint string, o event.Object, listing string) (*lock.Bucket, error) {
	ctx, stop := context.WithTimeoutCause(ctx, proofTime, errProofSilent)
	defer stop()
	type proof struct {
		bucket *lock.Bucket
		err    error
	}
	done := make(chan proof, 1)
	go func() {
		b, err := a.prove(ctx, endpoint, o, listing)
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
	case <-time.After(cleanTime):
		return nil, fmt.Errorf("looking whether the store of %s honours preconditions: %w", o, context.Cause(ctx))
	}
}

// prove needs to write beside the object.
func (a *app) prove(ctx context.Context, endpoint string, o event.Object, listing string) (*lock.Bucket, error) {
	store, err := a.store(ctx, endpoint)
	if err != nil {
		return nil, err
	}
	v := verdict{Endpoint: store.Endpoint(), Bucket: o.Bucket}
	kept, ok := v.known(time.Now())
	if err := kept.refuse(endpoint, listing); err != nil {
		return nil, err
	}
	if ok {
		return lock.Proved(store, o.Bucket), nil
	}
	b, err := lock.Open(ctx, store, o.Bucket, o.Key[:strings.LastIndex(o.Key, "/")+1])
	switch {
	case err == nil:
		kept, _ := v.known(time.Now()) // doctor may have found more meanwhile, and has seen listings
		if err := kept.refuse(endpoint, listing); err != nil {
			return nil, err
		}
		v.Listings = kept.Listings
		v.keep(time.Now())
	case ctx.Err() != nil:
		err = fmt.Errorf("looking whether the store of %s honours preconditions: %w", o, err)
	}
	return b, err
}

// refuse returns an error where doctor has found that locks and updates are not safe,
// or the feature that needs listings, if there is one.
func (v *verdict) refuse(endpoint, listing string) error {
	what, why := "locks and updates", finding{v.Unsafe, v.Proved}
	if v.Unsafe == "" && v.Listings != nil && listing != "" {
		what, why = listing, *v.Listings
	}
	if why.Unsafe == "" {
		return nil
	}
	at, again := event.Quote("s3://"+v.Bucket), "pawl doctor "
	if endpoint != "" {
		again += "--endpoint " + event.Quote(endpoint) + " "
	}
	return fmt.Errorf("%s: %s are %w: %s, as \"pawl doctor\" found on %s: when it is mended, run %s",
		at, what, errUnsafe, why.Unsafe, why.Found.Format(time.DateOnly), again+at)
}

// renew keeps what an examination found. Where that is unclear an earlier proof is
// dropped, and an earlier refusal stays.
func (v *verdict) renew(r *doctor.Report) error {
	now := time.Now()
	kept, _ := v.known(now)
	safety, why := r.Locks()
	switch {
	case safety != "":
		kept.Unsafe, kept.Proved = why, now
	case kept.Unsafe == "":
		kept.Proved = time.Time{}
	}
	switch listings, why := r.Listings(); listings {
	case doctor.Safe:
		kept.Listings = nil
	case doctor.Unsafe:
		kept.Listings = &finding{why, now.UTC()}
	}
	v.Unsafe, v.Listings = kept.Unsafe, kept.Listings
	v.keep(kept.Proved)
	kept, ok := v.known(now)
	if !ok || kept.Unsafe != "" || safety == doctor.Safe && (v.Listings == nil || kept.Listings != nil) {
		return nil
	}
	name, err := v.file()
	if err == nil {
		err = os.Remove(name)
	}
	if err != nil {
		return fmt.Errorf("an earlier proof of %s would be believed still: remove it: %w", event.Quote("s3://"+v.Bucket), err)
	}
	return nil
}

// file is where the verdict is kept, below the user's cache folder.
func (v *verdict) file() (string, error) {
	dir, err := os.UserCacheDir()
	if err != nil {
		return "", err
	}
	sum := sha256.Sum256([]byte(v.Endpoint + "\n" + v.Bucket))
	return filepath.Join(dir, "pawl", "stores", hex.EncodeToString(sum[:16])+".json"), nil
}

// known returns what was kept, and whether it is a refusal, or a proof of not long
// ago. What cannot be read is not known.
func (v *verdict) known(now time.Time) (kept verdict, ok bool) {
	name, err := v.file()
	if err != nil {
		return verdict{}, false
	}
	b, err := os.ReadFile(name)
	if err != nil || json.Unmarshal(b, &kept) != nil || kept.Endpoint != v.Endpoint || kept.Bucket != v.Bucket {
		return verdict{}, false
	}
	age := now.Sub(kept.Proved)
	return kept, age >= 0 && age < verdictAge || kept.Unsafe != "" // until doctor finds otherwise
}

// keep keeps the verdict, as one of this time. Where it cannot be kept, the next
// command looks again.
func (v *verdict) keep(proved time.Time) {
	name, err := v.file()
	if err != nil {
		return
	}
	kept := *v
	kept.Proved = proved.UTC()
	b, err := json.Marshal(kept)
	if err != nil || os.MkdirAll(filepath.Dir(name), 0o700) != nil {
		return
	}
	f, err := os.CreateTemp(filepath.Dir(name), ".new-*") // readable by its owner alone
	if err != nil {
		return
	}
	_, err = f.Write(append(b, '\n'))
	if closing := f.Close(); err != nil || closing != nil || os.Rename(f.Name(), name) != nil {
		_ = os.Remove(f.Name())
	}
}
