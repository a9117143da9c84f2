package doctor

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/pawlhq/pawl/bucket"
	"github.com/pawlhq/pawl/cell"
)

// The first presigned write is valid. The second expired an hour ago by the store's clock.
func checkExpiredSignature(ctx context.Context, s *session) (string, error) {
	store, ok := s.store.(bucket.Expirer)
	if !ok {
		return "", broken("this driver cannot sign requests that expire")
	}
	send := func(key string, ago time.Duration) (cell.Outcome, error) {
		ref := s.ref(key)
		outcome, _, err := s.writeWith(ctx, ref, content(), cell.Trust{Refusal: true}, func(ctx context.Context, o bucket.Object) (string, error) {
			etag, err := store.PutSigned(ctx, ref, o, bucket.Condition{}, store.StoreTime(time.Now()).Add(-ago), time.Minute)
			s.noteWrite(ref, err)
			if errors.Is(err, bucket.ErrExpired) {
				err = fmt.Errorf("%w: %w", cell.ErrRefused, err)
			}
			return etag, err
		})
		return outcome, err
	}
	_, err := send(expiredSignature, 0)
	if errors.Is(err, cell.ErrRefused) {
		return "", broken("a presigned write was rejected before it expired (check the clocks): %v", err)
	}
	if err != nil {
		return "", err
	}
	late := expiredSignature + "-late"
	outcome, err := send(late, time.Hour)
	switch {
	case outcome == cell.Landed:
		return "", ignored("a presigned write was accepted an hour after its signature expired")
	case !errors.Is(err, cell.ErrRefused):
		return "", err
	}
	now, err := s.read(ctx, s.ref(late))
	if err == nil && now.exists {
		err = broken("a presigned write with an expired signature was rejected, but it landed")
	}
	return "", err
}
