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
	Proved   time.Time `json:"proved"`
	// Unsafe is what it does not honour, as doctor has found.
	Unsafe string `json:"unsafe,omitempty"`
}

// errUnsafe: doctor has found that locks and updates cannot rely on a store.
var errUnsafe = errors.New("locks and updates are not safe there")

// cleanTime is what a proof that was given up has left to remove its object.
const cleanTime = 2 * time.Second

// proofTime is what a proof may take, so that one whose answers are lost is begun
// again.
const proofTime = time.Minute

var errProofSilent = fmt.Errorf("%w: it has not answered in the %v that a proof may take", bucket.ErrUnavailable, proofTime)

// proved returns the bucket of an object, once its store is known to honour what
// locks and updates rely on. A store that is silent does not keep it for long when
// ctx has ended.
func (a *app) proved(ctx context.Context, endpoint string, o event.Object) (*lock.Bucket, error) {
	ctx, stop := context.WithTimeoutCause(ctx, proofTime, errProofSilent)
	defer stop()
	type proof struct {
		bucket *lock.Bucket
		err    error
	}
	done := make(chan proof, 1)
	go func() {
		b, err := a.prove(ctx, endpoint, o)
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
func (a *app) prove(ctx context.Context, endpoint string, o event.Object) (*lock.Bucket, error) {
	store, err := a.store(ctx, endpoint)
	if err != nil {
		return nil, err
	}
	v := verdict{Endpoint: store.Endpoint(), Bucket: o.Bucket}
	if kept, ok := v.known(time.Now()); ok && kept.Unsafe == "" {
		return lock.Proved(store, o.Bucket), nil
	} else if ok {
		at, again := event.Quote("s3://"+o.Bucket), "pawl doctor "
		if endpoint != "" {
			again += "--endpoint " + event.Quote(endpoint) + " "
		}
		return nil, fmt.Errorf("%s: %w: %s, as \"pawl doctor\" found on %s: when it is mended, run %s",
			at, errUnsafe, kept.Unsafe, kept.Proved.Format(time.DateOnly), again+at)
	}
	b, err := lock.Open(ctx, store, o.Bucket, o.Key[:strings.LastIndex(o.Key, "/")+1])
	switch {
	case err == nil:
		v.keep(time.Now())
	case ctx.Err() != nil:
		err = fmt.Errorf("looking whether the store of %s honours preconditions: %w", o, err)
	}
	return b, err
}

// renew keeps what an examination found. Where that is unclear an earlier proof is
// dropped, and an earlier refusal stays.
func (v *verdict) renew(r *doctor.Report) error {
	safety, why := r.Locks()
	if safety != "" {
		v.Unsafe = why
		v.keep(time.Now())
	}
	if kept, ok := v.known(time.Now()); !ok || kept.Unsafe != "" || safety == doctor.Safe {
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

// known returns the verdict, if it was reached not long ago or is a refusal. What
// cannot be read is not known.
func (v *verdict) known(now time.Time) (kept verdict, ok bool) {
	name, err := v.file()
	if err != nil {
		return kept, false
	}
	b, err := os.ReadFile(name)
	if err != nil || json.Unmarshal(b, &kept) != nil {
		return kept, false
	}
	age := now.Sub(kept.Proved)
	young := age >= 0 && age < verdictAge || kept.Unsafe != "" // until doctor finds otherwise
	return kept, kept.Endpoint == v.Endpoint && kept.Bucket == v.Bucket && young
}

// keep keeps the verdict. Where it cannot be kept, the next command looks again.
func (v *verdict) keep(now time.Time) {
	name, err := v.file()
	if err != nil {
		return
	}
	kept := *v
	kept.Proved = now.UTC()
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
