// Package lockcmd contains the commands lock, which runs a program while it holds a lock, and update, which changes an object safely.
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

// lockOptions are the flags of "pawl lock".
type lockOptions struct {
	endpoint string
	wait     time.Duration // negative: without end
	onLost   string
	shared   bool
	slots    int // of a semaphore; 0: none
	config   lock.Config
}

// What becomes of the command when the lock is lost.
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
		Long: `Lock waits until it holds the lock whose lease is the object, runs the command, and
releases the lock. There is no server and no database: the bucket is enough. The
object is made when it is missing, and is never deleted. An object that is no
lock is left as it is. While the store is unavailable it is waited for, too. A lock
is not re-entrant: inside itself it waits for itself.

The lease is renewed while the command runs. The command's process group is ended
before the lease can expire, even if this process is stopped or killed, because a
second process guards the group. When the command ends, Pawl kills the rest of the
group before it releases the lock. Pawl kills the process group only. Processes
that leave it (setsid, timeout without --foreground), or run as another user
(sudo), keep running. Another "pawl lock" may be the command: it ends with this
one.

Standard input, output and error are the command's own. The command runs like a
background job: if it reads from the terminal, the terminal stops it. Give it
another input, such as </dev/null. If you suspend this process (Ctrl-Z) for longer
than the lease lasts, the command is ended. INT, TERM, HUP, QUIT, USR1 and USR2
are forwarded to the command's process group; while the lock is waited for, they
end the waiting. In the command's environment are

  PAWL_LOCK_TOKEN     the fencing token: higher than that of every holder before
  PAWL_LOCK_DEADLINE  when the lease ends that it began with (RFC 3339, UTC); it
                      moves on with each renewal

Nothing can keep a process from standing still at the wrong moment and going on
later. Give the token to what is changed: see --fence of "pawl update".

Before the first use of a bucket the store is asked whether it honours conditional
writes, with a few requests below .pawl-doctor/ beside the object. The answer is
kept in the user's cache folder for a week.`,
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

const lockExitCodes = `  N    that of the command; 128+N if it died of signal N
   1   the command was ended because its guard ended, or nothing was run
  64   wrong usage or configuration, no permission, the object is no lock, or the
       store ignores preconditions, or its listings omit the objects that --shared
       and --semaphore need: nothing was run
  69   the object store is unavailable, for longer than --wait: nothing was run
  75   the lock was not acquired in time, or was lost before the command was
       started: nothing was run
  76   the lock was lost while the command ran, which was ended
 126   the command cannot be run
 127   there is no such command
 128+N signal N ended the waiting: nothing was run
`

func (o *lockOptions) addFlags(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.DurationVar(&o.config.TTL, "ttl", 30*time.Second,
		"how long the lease lasts after each renewal: how long others wait for a holder that is gone (1s to 24h)")
	flags.DurationVar(&o.wait, "wait", -1, "how long to wait for the lock, and for the store; 0 tries once, for 10s. Giving up takes some seconds more where the store is silent")
	flags.Lookup("wait").DefValue = "without end"
	flags.StringVar(&o.config.Reason, "reason", "", "`text` that tells others why the lock is held")
	flags.StringVar(&o.config.ID, "id", "", "`name` that others know this lease by, for \"pawl lock release\": the number of a build, say")
	flags.StringVar(&o.config.Owner, "owner", "", "`name` that tells others who holds it (default the user)")
	flags.BoolVar(&o.shared, "shared", false, "share the lock with others who say so; it excludes those who do not")
	flags.IntVar(&o.slots, "semaphore", 0, "let up to `n` hold the lock; all have to say the same n")
	flags.StringVar(&o.onLost, "on-lost", onLostTerminate,
		"`what` to do with the command when the lock is lost: terminate (SIGTERM, soon SIGKILL) or kill (SIGKILL)")
	app.AddStoreFlags(cmd, &o.endpoint)
}

// check refuses by the name of its flag what package lock would not take, before
// anything is divided by it.
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
		return usageError("--shared and --semaphore exclude each other")
	}
	for _, text := range []struct {
		flag, value string
		most        int
	}{{"reason", o.config.Reason, lock.MaxText}, {"id", o.config.ID, lock.MaxID}, {"owner", o.config.Owner, lock.MaxText}} {
		switch {
		case len(text.value) > text.most:
			return usageError("--%s has %d bytes: %d at most", text.flag, len(text.value), text.most)
		case !utf8.ValidString(text.value):
			return usageError("--%s %s: is not UTF-8", text.flag, event.Quote(text.value))
		}
	}
	if !given("owner") {
		if u, err := user.Current(); err == nil {
			o.config.Owner = u.Username
		}
	}
	return nil
}

// errWaited is why waiting for a lock ended.
var errWaitTimeout = errors.New("it was not to be had in the time that --wait gives")

// tryTime is what a single try may take.
const tryTimeout = 10 * time.Second

// errSilent is why a single try ended.
var errNoAnswer = fmt.Errorf("%w: it has not answered in the %v that a try may take", bucket.ErrUnavailable, tryTimeout)

// acquire gets the lock, and ends that by cancel when it is time. The lease
// outlives the time that it may wait.
func acquire(ctx context.Context, a *app.App, cancel context.CancelCauseFunc, object event.Object, o *lockOptions) (*lock.Lease, error) {
	if o.wait >= 0 {
		limit, why := o.wait, errWaitTimeout
		if limit == 0 {
			limit, why = tryTimeout, errNoAnswer
		}
		late := time.AfterFunc(limit, func() { cancel(why) })
		defer func() {
			if !late.Stop() {
				cancel(why) // before anybody looks at the lease
			}
		}()
	}
	lease, err := waitFor(ctx, a, object, o)
	switch {
	case err == nil:
		return lease, nil
	case errors.Is(err, lock.ErrLost): // while it waited for those who share it
		err = fmt.Errorf("%w; %w", err, errNotStarted)
	}
	return nil, o.adviseLongerWait(app.WithCause(ctx, err))
}

// waitFor waits for the store, and then for the lock, or tries for it once. If it gives
// up because the store is away, the next try goes on with the same lock: it still
// knows our own writes.
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
	tell := true
	err = a.Retry(ctx, o.wait, unavailable, func() (err error) {
		if o.wait == 0 || tell {
			lease, err = try(ctx)
			if o.wait == 0 || !errors.Is(err, lock.ErrHeld) {
				return err
			}
			fmt.Fprintf(a.Err, "pawl: waiting: %v\n", err)
			tell = false
		}
		lease, err = wait(ctx)
		return err
	})
	return lease, err
}

// advise says how long to wait for a lock whose holder may be gone, where that was
// longer than --wait.
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
	return &app.Failure{Code: exitBusy, Err: err, Hint: fmt.Sprintf("if its holder is gone, wait for longer than its ttl: --wait %v", enough)}
}

// listing is doctor's name of the feature, if its other holders are found by listing
// them, or nothing. Who excludes readers looks for them, too, but is not refused:
// where listings hide readers, these are.
func (o *lockOptions) listingFeature() string {
	if o.shared || o.slots > 0 {
		return doctor.SharedLocks
	}
	return ""
}

// ways returns how to try for the lock once, and how to wait for it.
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

// answering is a store whose listings fail if they make no progress. Reads are bounded
// by package lock.
type boundedListings struct{ bucket.Store }

// List implements [bucket.Store].
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
