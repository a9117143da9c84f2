package archive

import (
	"context"

	"github.com/pawlhq/pawl/doctor"
)

// Prove returns an error if the store ignores preconditions or accepts a request whose
// signature has expired, or if a listing does not show an object that was just written. A
// worker that is killed meanwhile leaves an object below the prefix of objects that hold no
// records.
func (a *Archive) Prove(ctx context.Context) error {
	return doctor.Prove(ctx, a.Store, a.Bucket, a.Prefix+reserved, doctor.Archives)
}
