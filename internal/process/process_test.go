package process

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/pawlhq/pawl/internal/virtualtime"
)

func TestSleep(t *testing.T) {
	virtualtime.Test(t, func(t *testing.T) {
		cause := errors.New("enough")
		ctx, stop := context.WithCancelCause(t.Context())
		began := time.Now()
		if err := Sleep(ctx, time.Hour); err != nil || time.Since(began) != time.Hour {
			t.Errorf("%v after %v", err, time.Since(began))
		}
		time.AfterFunc(time.Minute, func() { stop(cause) })
		began = time.Now()
		if err := Sleep(ctx, time.Hour); !errors.Is(err, cause) || time.Since(began) != time.Minute {
			t.Errorf("%v after %v", err, time.Since(began))
		}
		for range 100 {
			if err := Sleep(ctx, 0); !errors.Is(err, cause) {
				t.Fatalf("%v although the context has ended", err)
			}
		}
	})
}

func TestNonce(t *testing.T) {
	if a, b := Nonce(), Nonce(); len(a) != 32 || a == b {
		t.Errorf("%q, %q", a, b)
	}
}
