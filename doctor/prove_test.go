package doctor_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"syscall"
	"testing"

	"github.com/pawlhq/pawl/bucket"
	"github.com/pawlhq/pawl/bucket/buckettest"
	"github.com/pawlhq/pawl/doctor"
	"github.com/pawlhq/pawl/event"
	"github.com/pawlhq/pawl/internal/virtualtime"
)

var allOps = []buckettest.Op{buckettest.Head, buckettest.Get, buckettest.Put, buckettest.Delete, buckettest.List}

func TestProveIsQuick(t *testing.T) {
	s := buckettest.NewFaults(memory())
	if err := doctor.Prove(t.Context(), s, name, "locks/", doctor.Locks); err != nil {
		t.Error(err)
	}
	calls := 0
	for _, op := range allOps {
		calls += s.Calls(op)
	}
	if calls != 7 {
		t.Errorf("%d requests, want 7", calls)
	}
	if keys := left(t, s); len(keys) > 0 {
		t.Errorf("left behind: %q", keys)
	}
}

func TestProveNames(t *testing.T) {
	refusedAndLanded := func(absent bool) *altered {
		s := &altered{Store: memory()}
		s.put = func(ctx context.Context, ref event.Object, o bucket.Object, c bucket.Condition) (string, error) {
			etag, err := s.Store.Put(ctx, ref, o, c)
			if errors.Is(err, bucket.ErrPrecondition) && exists(s.Store, ref) && c.IfAbsent == absent {
				_, _ = o.Body.(io.Seeker).Seek(0, 0)
				_, _ = s.Store.Put(ctx, ref, o, bucket.Condition{})
			}
			return etag, err
		}
		return s
	}
	for _, tc := range []struct {
		fault string
		store bucket.Store
		kind  error
		says  string
	}{
		{"If-None-Match", ignoringIfNoneMatch(), bucket.ErrIgnored, "it ignores If-None-Match, "},
		{"If-Match", ignoringIfMatch(), bucket.ErrIgnored, "it ignores If-Match, "},
		{"If-Match on a missing key", creatingOnIfMatch(), bucket.ErrIgnored, "it ignores If-Match on a missing key, "},
		{"If-None-Match refused, and landed", refusedAndLanded(true), bucket.ErrInvalid, "although the condition held"},
		{"If-Match refused, and landed", refusedAndLanded(false), bucket.ErrIgnored, "it ignores If-Match, "},
		{"reads without ETags", readsWithoutETags(), bucket.ErrIgnored, "no ETag"},
		{"no conditional writes", refusing(bucket.ErrInvalid), bucket.ErrInvalid, "the store rejected the request"},
		{"never holds", refusing(bucket.ErrPrecondition), bucket.ErrInvalid, "although the condition held"},
		{"always conflicts", refusing(bucket.ErrConflict), bucket.ErrConflict, "conflicting"},
		{"denied", refusing(bucket.ErrDenied), bucket.ErrDenied, "denied"},
	} {
		t.Run(tc.fault, func(t *testing.T) {
			virtualtime.Test(t, func(t *testing.T) {
				err := doctor.Prove(t.Context(), tc.store, name, "", doctor.Locks)
				if !errors.Is(err, tc.kind) || !strings.Contains(fmt.Sprint(err), tc.says) || !strings.Contains(fmt.Sprint(err), "s3://"+name) {
					t.Errorf("%v, want %v and %q", err, tc.kind, tc.says)
				}
				if errors.Is(err, bucket.ErrIgnored) != (tc.kind == bucket.ErrIgnored) {
					t.Errorf("%v is ErrIgnored", err)
				}
				if keys := left(t, tc.store); len(keys) > 0 {
					t.Errorf("left behind: %q", keys)
				}
			})
		})
	}
}

func TestProveLosesAnswers(t *testing.T) {
	for _, tc := range []struct {
		name  string
		fault buckettest.Fault
	}{{"answer", buckettest.Landed}, {"request", buckettest.Lost}, {"conflict", buckettest.Answer(bucket.ErrConflict)}, {"doubled", buckettest.Twice}} {
		for nth := range 6 {
			t.Run(fmt.Sprint(tc.name, " ", nth+1), func(t *testing.T) {
				virtualtime.Test(t, func(t *testing.T) {
					s := buckettest.NewFaults(memory())
					op, before := buckettest.Put, nth
					if nth == 5 {
						op, before = buckettest.Delete, 0
					}
					for range before {
						s.Next(op, buckettest.Pass)
					}
					s.Next(op, tc.fault)
					if err := doctor.Prove(t.Context(), s, name, "", doctor.Locks); err != nil {
						t.Error(err)
					}
					if keys := left(t, s); len(keys) > 0 {
						t.Errorf("left behind: %q", keys)
					}
				})
			})
		}
	}
}

func unreachable(context.Context, func(context.Context) error) error {
	return fmt.Errorf("%w: sending: %w", bucket.ErrUnclear, &net.OpError{Op: "dial", Net: "tcp", Err: syscall.ECONNREFUSED})
}

func TestProveUnreachable(t *testing.T) {
	virtualtime.Test(t, func(t *testing.T) {
		s := buckettest.NewFaults(memory())
		s.Next(buckettest.Put, unreachable, unreachable, unreachable)
		err := doctor.Prove(t.Context(), s, name, "", doctor.Locks)
		if !errors.Is(err, bucket.ErrUnavailable) || errors.Is(err, bucket.ErrUnclear) || strings.Contains(fmt.Sprint(err), "\n") {
			t.Errorf("%v, want one line that the store is unavailable", err)
		}
		for _, op := range []buckettest.Op{buckettest.Head, buckettest.Get, buckettest.Delete, buckettest.List} {
			if n := s.Calls(op); n > 0 {
				t.Errorf("%d requests of %v", n, op)
			}
		}
	})
}

func TestProveUnreachableOnce(t *testing.T) {
	virtualtime.Test(t, func(t *testing.T) {
		s := buckettest.NewFaults(memory())
		s.Next(buckettest.Put, unreachable, buckettest.Pass, unreachable, buckettest.Lost)
		if err := doctor.Prove(t.Context(), s, name, "", doctor.Locks); err != nil {
			t.Error(err)
		}
		s = buckettest.NewFaults(memory())
		s.Next(buckettest.Put, buckettest.Lost)
		s.Next(buckettest.Get, buckettest.Answer(bucket.ErrUnavailable))
		s.Next(buckettest.Delete, unreachable, unreachable, unreachable)
		err := doctor.Prove(t.Context(), s, name, "", doctor.Locks)
		if !errors.Is(err, bucket.ErrUnavailable) || !strings.Contains(fmt.Sprint(err), "; cleaning up: ") {
			t.Errorf("%v, want the errors of the check and of the cleanup", err)
		}
	})
}

func TestProveInterrupted(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	s := buckettest.NewFaults(memory())
	s.Next(buckettest.Put, buckettest.Pass, buckettest.Pass, buckettest.Between(cancel))
	if err := doctor.Prove(ctx, s, name, "", doctor.Locks); !errors.Is(err, context.Canceled) {
		t.Errorf("%v, want that it was cancelled", err)
	}
	if keys := left(t, s); len(keys) > 0 {
		t.Errorf("left behind: %q", keys)
	}
}
