package archive

import (
	"context"
	"errors"

	"github.com/pawlhq/pawl/bucket"
	"github.com/pawlhq/pawl/doctor"
)

// Prove returns an error if the store ignores preconditions, accepts an expired signature, or does
// not list an object that was just written. If the process is killed, an object remains below
// _pawl/.
func (a *Archive) Prove(ctx context.Context) error {
	err := doctor.Prove(ctx, a.Store, a.Bucket, a.Prefix+reserved, doctor.Archives)
	if errors.Is(err, bucket.ErrDenied) && a.pace(ctx, 1, err) == nil {
		err = doctor.Prove(ctx, a.Store, a.Bucket, a.Prefix+reserved, doctor.Archives)
	}
	return err
}
