package archive

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/pawlhq/pawl/bucket"
)

// Prove returns an error if the store ignores preconditions, or if a listing does not show
// an object that was just written. A worker that is killed meanwhile leaves an object below
// the prefix of objects that hold no records.
func (a *Archive) Prove(ctx context.Context) error {
	if err := bucket.Prove(ctx, a.Store, a.Bucket, a.Prefix+reserved); err != nil {
		return err
	}
	return a.proveListing(ctx)
}

// proveListing writes an object and lists it. Without consistent listings a takeover would
// not find what the register does not know.
func (a *Archive) proveListing(ctx context.Context) (err error) {
	ref := a.object(a.Prefix + reserved + "listed/" + a.Nonce())
	const text = "pawl"
	for try := 1; ; try++ {
		o := bucket.Object{Body: strings.NewReader(text), Size: int64(len(text)), ContentType: "text/plain"}
		_, err = a.Store.Put(ctx, ref, o, bucket.Condition{})
		if err == nil || permanent(err) {
			break
		}
		if err := a.pace(ctx, try, err); err != nil {
			return err
		}
	}
	if err != nil {
		return fmt.Errorf("writing %s: %w", ref, err)
	}
	defer func() {
		err = errors.Join(err, a.Store.Delete(context.WithoutCancel(ctx), ref, bucket.Condition{}))
	}()
	for info, err := range a.Store.List(ctx, a.Bucket, ref.Key, "") {
		if err != nil || info.Key == ref.Key {
			return err
		}
	}
	return fmt.Errorf("%w: a listing of %s does not show the object that was just written: use a store with consistent listings", bucket.ErrInvalid, ref)
}
