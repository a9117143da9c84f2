package archive

import (
	"context"
	"errors"

	"github.com/pawlhq/pawl/bucket"
	"github.com/pawlhq/pawl/doctor"
)

// Prove returns an error if the store ignores preconditions or accepts a request whose
// signature has expired, or if a listing does not show an object that was just written. A
// worker that is killed meanwhile leaves an object below the prefix of objects that hold no
// records.
func (a *Archive) Prove(ctx context.Context) error {
	err := doctor.Prove(ctx, a.Store, a.Bucket, a.Prefix+reserved, doctor.Archives)
	// MinIO also denies a write whose parent folder another worker's proof removes just then.
	if errors.Is(err, bucket.ErrDenied) && a.pace(ctx, 1, err) == nil {
		err = doctor.Prove(ctx, a.Store, a.Bucket, a.Prefix+reserved, doctor.Archives)
	}
	return err
}
