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
		Long: `Release releases a lock that is held under the token, as "pawl lock show" prints
it, or by one that "pawl lock --id" has named. If its holder is not gone, it
learns of that at its next renewal, and ends its command then: until then two may
work at the same time. Its token is too old at once. With --token, the lease of a
reader or of a slot is released by its own key; with --id, it is found by that of
the lock.

A lock whose holder is gone needs no help: the next one enters after its ttl.`,
		Example: `  pawl lock release s3://state/deploy --token 1790000000000003
  pawl lock release s3://state/deploy --id "build $BUILD"`,
		Args: oneArg,
		RunE: func(cmd *cobra.Command, args []string) error {
			if given := cmd.Flags().Changed; given("token") == given("id") || token < 1 && id == "" {
				return usageError("say either --token N, as pawl lock show prints it, or --id NAME: the lock may have another holder by now")
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
		return app.Failed(err, "") // it is not as the caller thought
	case err != nil:
		return app.WithCause(ctx, err)
	}
	return printLock(a, toLockJSON(o, &lock.Status{Key: o.Key, Record: r}))
}

// leaseOf finds the lease that one of this id holds: that of the lock itself, of a
// reader or of a slot.
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
			return "", 0, s.Err // it may be the one
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
		return "", 0, app.Failed(fmt.Errorf("the lock %s is not held as %s", o, event.Quote(id)), "pawl lock show tells who holds it")
	case len(same) > 1:
		return "", 0, usageError("the lock %s is held as %s by %d: release one of them, as %s",
			o, event.Quote(id), len(same), strings.Join(same, ", or "))
	}
	return key, token, nil
}

func missingLock(o event.Object) error {
	return app.Failed(fmt.Errorf("the lock %s: %w: nobody has ever held it", o, bucket.ErrNotFound), "")
}
