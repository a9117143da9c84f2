package lockcmd

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/pawlhq/pawl/bucket"
	"github.com/pawlhq/pawl/cmd/pawl/app"
	"github.com/pawlhq/pawl/cmd/pawl/doctorcmd"
	"github.com/pawlhq/pawl/event"
	"github.com/pawlhq/pawl/lock"
)

func newLockReleaseCommand(a *app.App) *cobra.Command {
	var endpoint, id string
	var token int64
	cmd := &cobra.Command{
		Use:   "release s3://bucket/key {--token N | --id NAME}",
		Short: "Release a lock by force, in the name of its holder",
		Long: `Release releases a lock that is held under the given token, which "pawl lock show"
prints, or by a holder with the given --id. If the holder is still running, it
notices at its next renewal, and then ends its command. Until then, two holders may
work at the same time; writes with --fence reject the old one at once. To release
the lease of a reader or a slot, use its own key with --token, or the key of the
lock with --id.

If a holder has crashed, you need not release its lock: another process takes it
over after its ttl.`,
		Example: `  pawl lock release s3://state/deploy --token 1790000000000003
  pawl lock release s3://state/deploy --id "build $BUILD"`,
		Args: oneArg,
		RunE: func(cmd *cobra.Command, args []string) error {
			if given := cmd.Flags().Changed; given("token") == given("id") || token < 1 && id == "" {
				return usageError("want either --token N, as pawl lock show prints it, or --id NAME, because the lock may have another holder by now")
			}
			return sysexit(runLockRelease(cmd.Context(), a, args[0], endpoint, token, id))
		},
	}
	cmd.Flags().Int64Var(&token, "token", 0, "the fencing `token` of the holder")
	cmd.Flags().StringVar(&id, "id", "", "the `name` that the holder gave its lease")
	app.AddStoreFlags(cmd, &endpoint)
	app.DocumentExitCodes(cmd, readExitCodes)
	return cmd
}

func runLockRelease(ctx context.Context, a *app.App, arg, endpoint string, token int64, id string) error {
	o, err := oneObject(arg)
	if err != nil {
		return err
	}
	if id != "" {
		if o.Key, token, err = findLease(ctx, a, endpoint, o, id); err != nil {
			return err
		}
	}
	ctx, stop := context.WithTimeoutCause(ctx, tryTimeout, errNoAnswer)
	defer stop()
	b, err := doctorcmd.OpenProven(ctx, a, endpoint, o, "")
	if err != nil {
		return app.WithCause(ctx, err)
	}
	r, err := b.ForceRelease(ctx, o.Key, token)
	switch {
	case errors.Is(err, lock.ErrConfig):
		return app.Failed(err, "") // the lock is not as the caller expected
	case err != nil:
		return app.WithCause(ctx, err)
	}
	return printLock(a, toLockJSON(o, &lock.Status{Key: o.Key, Record: r}))
}

// findLease also searches the leases of readers and slots.
func findLease(ctx context.Context, a *app.App, endpoint string, o event.Object, id string) (key string, token int64, err error) {
	b, err := openForReading(ctx, a, endpoint, o.Bucket)
	if err != nil {
		return "", 0, err
	}
	found := 0
	var same []string
	for s, err := range leases(ctx, b, o.Key, leaseSuffixes...) {
		switch err = cmp.Or(err, storeError(&s)); {
		case err != nil:
			return "", 0, err
		case s.Err != nil && (s.Key == o.Key || !errors.Is(s.Err, lock.ErrForeign)):
			return "", 0, s.Err // it may be the lease that the caller wants
		}
		found++
		if s.Err == nil && s.Record.State == lock.Held && s.Record.ID == id {
			key, token = s.Key, s.Record.Token
			same = append(same, fmt.Sprintf("%s --token %d", event.Object{Bucket: o.Bucket, Key: key}, token))
		}
	}
	switch {
	case found == 0:
		return "", 0, missingLock(o)
	case len(same) == 0:
		return "", 0, app.Failed(fmt.Errorf("the lock %s has no holder with the id %s", o, event.Quote(id)), "pawl lock show prints the holders")
	case len(same) > 1:
		return "", 0, usageError("the lock %s has %[3]d holders with the id %[2]s: release one of them, as %[4]s",
			o, event.Quote(id), len(same), strings.Join(same, ", or "))
	}
	return key, token, nil
}

func missingLock(o event.Object) error {
	return app.Failed(fmt.Errorf("the lock %s: %w: the lock has never been held", o, bucket.ErrNotFound), "")
}
