// Package lockcmd contains the commands lock, which runs a program under a lock, and update.
package lockcmd

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"os/user"
	"time"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"github.com/pawlhq/pawl/bucket"
	"github.com/pawlhq/pawl/cmd/pawl/app"
	"github.com/pawlhq/pawl/cmd/pawl/doctorcmd"
	"github.com/pawlhq/pawl/doctor"
	"github.com/pawlhq/pawl/event"
	"github.com/pawlhq/pawl/lock"
)

type lockOptions struct {
	endpoint string
	wait     time.Duration // negative means no limit
	onLost   string
	shared   bool
	slots    int // holders of a semaphore; 0 means no semaphore
	config   lock.Config
}

const (
	onLostTerminate = "terminate"
	onLostKill      = "kill"
)

// NewLockCommand returns the command lock.
func NewLockCommand(a *app.App) *cobra.Command {
	o := lockOptions{wait: -1}
	cmd := &cobra.Command{
		Use:   "lock [flags] s3://bucket/key -- command [argument ...]",
		Short: "Run a command while holding a lock on an object store",
		Long: `Lock waits until it holds the lock, runs the command, and releases the lock. The
lock is a lease in the named object. Lock needs no server and no database, only the
bucket. It creates the object if it is missing, and never deletes it. It does not
change an object that is not a lock. While the store is unavailable, it retries. A
lock is not re-entrant: a second "pawl lock" inside the command waits for the first.

Lock renews the lease while the command runs. The command's process group ends
before the lease can expire, even if this process is stopped or killed, because a
second process guards the group. When the command ends, Pawl kills the rest of the
group before it releases the lock. Pawl kills the process group only. Processes
that leave it (setsid, timeout without --foreground), or run as another user
(sudo), keep running. The command may be another "pawl lock": it ends together
with this one.

The command uses standard input, output and error directly. It runs like a
background job: if it reads from the terminal, the terminal stops it. Redirect its
input, for example from /dev/null. If you suspend this process (Ctrl-Z) for longer
than the lease lasts, the guard ends the command. Lock forwards INT, TERM, HUP,
QUIT, USR1 and USR2 to the command's process group. While Lock waits for the lock,
these signals end the wait. The command's environment contains

  PAWL_LOCK_TOKEN     the fencing token, higher than the token of every earlier
                      holder
  PAWL_LOCK_DEADLINE  the end of the lease at the start of the command (RFC 3339,
                      UTC); each renewal extends the lease

A process can pause at any time and continue after its lease has expired. Pass the
token to the system that you change: see --fence of "pawl update".

Before the first use of a bucket, Lock checks that the store honors conditional
writes. It sends a few requests below .pawl-doctor/ next to the object, and caches
the result in the user's cache folder for a week.`,
		Example: `  pawl lock s3://state/deploy -- ./deploy.sh
  pawl lock --wait 1m --reason "nightly backup" s3://state/backup -- restic backup /srv
  pawl lock --shared s3://state/index -- ./search
  pawl lock --semaphore 4 s3://state/builds -- make
  pawl lock s3://state/site -- sh -c 'pawl update --fence $PAWL_LOCK_TOKEN s3://state/site.json -- ./edit'`,
		Args: cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			object, command, err := splitArgs(cmd, args)
			if err = cmp.Or(err, o.check(cmd)); err != nil {
				return err
			}
			if err := object.CheckPath(); err != nil {
				return usageError("%s: %w", object, err)
			}
			return sysexit(runLock(cmd.Context(), a, object, command, &o))
		},
	}
	o.addFlags(cmd)
	cmd.SetFlagErrorFunc(flagUsageError)
	cmd.AddCommand(newLockLsCommand(a), newLockShowCommand(a), newLockReleaseCommand(a))
	app.DocumentExitCodes(cmd, lockExitCodes)
	return cmd
}

const lockExitCodes = `  N    exit code of the command; 128+N if signal N killed it
   1   the command was ended because its guard had ended; or another failure, and
       nothing was run
  64   wrong usage or configuration, no permission, the object is not a lock, the
       store ignores preconditions, or its listings omit objects that --shared and
       --semaphore need: nothing was run
  69   the object store was unavailable for longer than --wait: nothing was run
  75   the lock was not acquired within --wait, or was lost before the command was
       started: nothing was run
  76   the lock was lost while the command ran, and the command was ended
 126   the command cannot be executed
 127   the command was not found
 128+N signal N ended the wait: nothing was run
`

func (o *lockOptions) addFlags(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.DurationVar(&o.config.TTL, "ttl", 30*time.Second,
		"duration of the lease after each renewal, 1s to 24h; after a crash, others wait this long")
	flags.DurationVar(&o.wait, "wait", -1, "maximum `time` to wait for the lock and the store; 0 means one attempt of at most 10s. If the store does not answer, the command may exit some seconds later")
	flags.Lookup("wait").DefValue = "no limit"
	flags.StringVar(&o.config.Reason, "reason", "", "`text` that others see as the reason for the lock")
	flags.StringVar(&o.config.ID, "id", "", "`name` of this lease for \"pawl lock release\", for example a build number")
	flags.StringVar(&o.config.Owner, "owner", "", "`name` of the holder that others see (default the user)")
	flags.BoolVar(&o.shared, "shared", false, "share the lock with other --shared holders; it excludes holders without --shared")
	flags.IntVar(&o.slots, "semaphore", 0, "let up to `n` commands hold the lock; all must use the same n")
	flags.StringVar(&o.onLost, "on-lost", onLostTerminate,
		"`action` on the command if the lock is lost: terminate (SIGTERM, soon SIGKILL) or kill (SIGKILL)")
	app.AddStoreFlags(cmd, &o.endpoint)
}

// The error of check names the flag.
func (o *lockOptions) check(cmd *cobra.Command) error {
	given := cmd.Flags().Changed
	switch {
	case o.config.TTL < lock.MinTTL || o.config.TTL > lock.MaxTTL:
		return usageError("--ttl %v: want 1s to 24h", o.config.TTL)
	case given("wait") && o.wait < 0:
		return usageError("--wait %v: must not be negative", o.wait)
	case given("semaphore") && (o.slots < 1 || o.slots > lock.MaxSlots):
		return usageError("--semaphore %d: want 1 to %d", o.slots, lock.MaxSlots)
	case o.onLost != onLostTerminate && o.onLost != onLostKill:
		return usageError("--on-lost %s: want %s or %s", event.Quote(o.onLost), onLostTerminate, onLostKill)
	case o.shared && o.slots > 0:
		return usageError("--shared and --semaphore cannot be combined")
	}
	for _, text := range []struct {
		flag, value string
		most        int
	}{{"reason", o.config.Reason, lock.MaxText}, {"id", o.config.ID, lock.MaxID}, {"owner", o.config.Owner, lock.MaxText}} {
		switch {
		case len(text.value) > text.most:
			return usageError("--%s has %d bytes: at most %d", text.flag, len(text.value), text.most)
		case !utf8.ValidString(text.value):
			return usageError("--%s %s: want UTF-8", text.flag, event.Quote(text.value))
		}
	}
	if !given("owner") {
		if u, err := user.Current(); err == nil {
			o.config.Owner = u.Username
		}
	}
	return nil
}

var errWaitTimeout = errors.New("the lock was not acquired within --wait")

const tryTimeout = 10 * time.Second

var errNoAnswer = fmt.Errorf("%w: no answer within the %v of one attempt", bucket.ErrUnavailable, tryTimeout)

// acquire calls cancel when the time to wait has passed. The lease remains valid.
func acquire(ctx context.Context, a *app.App, cancel context.CancelCauseFunc, object event.Object, o *lockOptions) (*lock.Lease, error) {
	if o.wait >= 0 {
		limit, why := o.wait, errWaitTimeout
		if limit == 0 {
			limit, why = tryTimeout, errNoAnswer
		}
		late := time.AfterFunc(limit, func() { cancel(why) })
		defer func() {
			if !late.Stop() {
				cancel(why) // before the caller can use the lease
			}
		}()
	}
	lease, err := waitFor(ctx, a, object, o)
	switch {
	case err == nil:
		return lease, nil
	case errors.Is(err, lock.ErrLost): // while acquire waited for shared holders
		err = fmt.Errorf("%w; %w", err, errNotStarted)
	}
	return nil, o.adviseLongerWait(app.WithCause(ctx, err))
}

// Later attempts use the same lock object, which remembers the writes of this process.
func waitFor(ctx context.Context, a *app.App, object event.Object, o *lockOptions) (lease *lock.Lease, err error) {
	var b *lock.Bucket
	err = a.Retry(ctx, o.wait, unavailable, func() (err error) {
		b, err = doctorcmd.OpenProven(ctx, a, o.endpoint, object, o.listingFeature())
		return err
	})
	if err != nil {
		return nil, err
	}
	try, wait, err := o.acquireFuncs(b, object.Key)
	if err != nil {
		return nil, err
	}
	tryFirst := true
	err = a.Retry(ctx, o.wait, unavailable, func() (err error) {
		if o.wait == 0 || tryFirst {
			lease, err = try(ctx)
			if o.wait == 0 || !errors.Is(err, lock.ErrHeld) {
				return err
			}
			fmt.Fprintf(a.Err, "pawl: waiting: %v\n", err)
			tryFirst = false
		}
		lease, err = wait(ctx)
		return err
	})
	return lease, err
}

func (o *lockOptions) adviseLongerWait(err error) error {
	held, ok := errors.AsType[*lock.HeldError](err)
	if !ok || o.wait < 0 || held.Record.TTL == 0 || sysexitCode(err) != exitBusy {
		return err
	}
	ttl := time.Duration(held.Record.TTL) * time.Millisecond
	enough := (ttl + ttl/20 + 1500*time.Millisecond).Truncate(time.Second)
	if o.wait >= enough {
		return err
	}
	return &app.Failure{Code: exitBusy, Err: err, Hint: fmt.Sprintf("if its holder has crashed, wait for longer than its ttl: --wait %v", enough)}
}

// listingFeature returns the feature for doctor. An exclusive holder also lists the shared holders,
// but needs none: if listings are stale, pawl refuses --shared.
func (o *lockOptions) listingFeature() string {
	if o.shared || o.slots > 0 {
		return doctor.SharedLocks
	}
	return ""
}

func (o *lockOptions) acquireFuncs(b *lock.Bucket, key string) (try, wait func(context.Context) (*lock.Lease, error), err error) {
	if o.slots > 0 {
		s, err := b.Semaphore(key, o.slots, o.config)
		if err != nil {
			return nil, nil, err
		}
		return s.TryAcquire, s.Acquire, nil
	}
	m, err := b.RWMutex(key, o.config)
	switch {
	case err != nil:
		return nil, nil, err
	case o.shared:
		return m.TryRLock, m.RLock, nil
	}
	return m.TryLock, m.Lock, nil
}

// boundedListings ends listings that make no progress, because package lock bounds only reads.
type boundedListings struct{ bucket.Store }

func (s boundedListings) List(ctx context.Context, name, prefix, startAfter string) iter.Seq2[bucket.Info, error] {
	return func(yield func(bucket.Info, error) bool) {
		ctx, cancel := context.WithCancelCause(ctx)
		defer cancel(nil)
		late := time.AfterFunc(tryTimeout, func() { cancel(errNoAnswer) })
		defer late.Stop()
		for info, err := range s.Store.List(ctx, name, prefix, startAfter) {
			late.Stop()
			if err != nil {
				err = app.WithCause(ctx, err)
			}
			if !yield(info, err) {
				return
			}
			late.Reset(tryTimeout)
		}
	}
}
