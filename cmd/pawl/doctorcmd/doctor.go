// Package doctorcmd contains the command doctor, and the stored results of its checks.
package doctorcmd

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/schollz/progressbar/v3"
	"github.com/spf13/cobra"

	"github.com/pawlhq/pawl/bucket"
	"github.com/pawlhq/pawl/cmd/pawl/app"
	"github.com/pawlhq/pawl/doctor"
	"github.com/pawlhq/pawl/event"
)

// NewDoctorCommand returns the command doctor.
func NewDoctorCommand(a *app.App) *cobra.Command {
	var endpoint string
	cmd := &cobra.Command{
		Use:   "doctor s3://bucket[/prefix]",
		Short: "Prove what an object store honours, and say what is safe there",
		Long: `Doctor examines the store that a bucket is in: whether it refuses writes and
removals whose precondition does not hold, also of 32 writers at once; whether
reads and listings tell of what was just written and removed; whether a read
during writes is whole; whether it can copy objects on a condition. A store that silently ignores a precondition answers like
one that honours it, until two writers meet.

Then it says of each feature of Pawl whether it is safe there. If there is a
configuration file, it also says of each pipeline that matches the bucket whether
the bucket is configured to tell of created and of removed objects (yes, partly,
no; unknown where the store cannot tell), and of each SQS source whether its queue
accepts the longest notification that S3 sends, 64 KiB. A queue whose
MaximumMessageSize is smaller loses longer ones.

The bucket has to be there. Doctor makes about a thousand requests in some
seconds. It writes some sixty small objects whose keys begin with the prefix and
.pawl-doctor/, and removes them at the end, whatever happens; a second
interruption leaves them. A pipeline that matches all of the bucket sees them
come and go. Where a bucket keeps versions, those remain until a lifecycle rule
removes them. It needs the permissions to read, write, remove and list, and for
the last part s3:GetBucketNotification and sqs:GetQueueAttributes.

What it finds of locks is kept in the user's cache folder: where they are safe
"pawl lock" and "pawl update" do not look themselves for a week, and where they are
not they refuse the bucket until doctor finds otherwise. Where that is unclear an
earlier proof is dropped. Where it is only listings that do not show what was
written, "pawl lock" refuses --shared and --semaphore.

With --json the report is one JSON object: bucket, prefix, safe (every feature),
checks (name, means, verdict: ok, ignored, failed or unclear; detail), features
(name, safety: "safe", "safe with a limit" or "not safe"; detail),
notifications (pipeline, created, removed, to, detail), and queues (queue,
max_message_bytes, accepts: yes, no or unknown; detail).`,
		Example: `  pawl doctor s3://photos
  pawl doctor s3://state/locks/ --endpoint http://127.0.0.1:9000
  pawl doctor s3://photos --json | jq -r '.checks[] | select(.verdict != "ok") | .name'`,
		Args: app.SingleArg,
		RunE: func(cmd *cobra.Command, args []string) error { return runDoctor(cmd.Context(), a, args[0], endpoint) },
	}
	app.AddStoreFlags(cmd, &endpoint)
	app.DocumentExitCodes(cmd, `  0  every feature is safe, if within the limit that is said
  1  the store could not be examined, or not be cleaned up
  2  wrong usage or configuration: no such bucket, no permission
  3  a feature is not safe there, a pipeline is not told of changes, or a queue rejects long notifications
`)
	return cmd
}

// diagnosis is the report of a doctor.
type diagnosis struct {
	*doctor.Report
	Safe          bool       `json:"safe"`
	Notifications []coverage `json:"notifications,omitempty"`
	Queues        []queue    `json:"queues,omitempty"`
}

func runDoctor(ctx context.Context, a *app.App, arg, endpoint string) error {
	name, prefix, err := app.BucketAndPrefix(arg)
	if err != nil {
		return err
	}
	if err := (event.Object{Bucket: name, Key: prefix + "x"}).CheckPath(); err != nil {
		return app.Usage("%s: %w", event.Quote(arg), err)
	}
	log, err := a.Logger(a.Err, slog.LevelWarn)
	if err != nil {
		return err
	}
	c, err := a.OptionalConfig()
	if err != nil {
		return err
	}
	store, err := a.Store(ctx, endpoint)
	if err != nil {
		return err
	}
	ctx, stop := app.UntilSignal(ctx, log)
	defer stop()
	r, examineErr := examine(ctx, a, store, name, prefix)
	if r == nil {
		return doctorFailure(ctx, examineErr)
	}
	var renewErr error
	if examineErr == nil {
		renewErr = storeCheck{store.Endpoint(), name}.update(r)
	}
	d := &diagnosis{Report: r, Safe: r.Safe()}
	if c != nil {
		d.Notifications = checkCoverage(ctx, store, name, c.Pipelines)
	}
	if len(d.Notifications) > 0 {
		d.Queues = queues(ctx, a, log, c.Sources)
	}
	if err := errors.Join(printDiagnosis(a, d), renewErr); err != nil || examineErr != nil {
		return errors.Join(err, doctorFailure(ctx, examineErr))
	}
	if !d.Safe || uncovered(d.Notifications) || rejecting(d.Queues) {
		return app.Found()
	}
	return nil
}

// examine examines the store, and shows how far it is where a person watches.
func examine(ctx context.Context, a *app.App, store bucket.Store, name, prefix string) (*doctor.Report, error) {
	var o doctor.Options
	if app.IsTerminal(a.Err) {
		bar := progressbar.NewOptions(-1, progressbar.OptionSetWriter(a.Err), progressbar.OptionSetRenderBlankState(true),
			progressbar.OptionThrottle(100*time.Millisecond), progressbar.OptionClearOnFinish())
		defer func() { _ = bar.Finish() }() // a bar that cannot be drawn harms nothing
		o.Progress = func(check string, done, total int) {
			bar.Describe(fmt.Sprintf("check %d of %d: %s", done+1, total, check))
		}
	}
	return doctor.Examine(ctx, store, name, prefix, o)
}

// doctorFailure says what to do about an error that stopped the examination.
func doctorFailure(ctx context.Context, err error) error {
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil:
		return app.Failed(fmt.Errorf("interrupted: %w", err), "")
	case errors.Is(err, bucket.ErrDenied):
		return &app.Failure{Code: app.ExitUsage, Err: err, Hint: "it needs to list the bucket, and to read, write and remove objects below .pawl-doctor/ after the prefix"}
	case errors.Is(err, bucket.ErrUnavailable), errors.Is(err, bucket.ErrUnclear):
		return app.Failed(err, "is the store running and reachable?")
	}
	return err
}

// printDiagnosis prints what was found, for people or for programs.
func printDiagnosis(a *app.App, d *diagnosis) error {
	if a.JSON {
		return a.PrintJSON(d)
	}
	parts := []string{checksTable(d.Checks), featuresTable(d.Features)}
	if len(d.Notifications) > 0 {
		parts = append(parts, coverageTable(d.Notifications))
	}
	if len(d.Queues) > 0 {
		parts = append(parts, queuesTable(d.Queues))
	}
	_, err := fmt.Fprintln(a.Out, strings.Join(parts, "\n\n"))
	return err
}

func checksTable(checks []doctor.Check) string {
	t := app.PlainWriter("CHECK", "VERDICT", "WHAT IT MEANS")
	for _, c := range checks {
		t.AppendRow(table.Row{c.Name, c.Verdict, c.Means})
		if c.Detail != "" {
			t.AppendRow(table.Row{"", "", "found: " + app.Printable(c.Detail)})
		}
	}
	return t.Render()
}

func featuresTable(features []doctor.Feature) string {
	t := app.PlainWriter("FEATURE", "HERE", "BECAUSE")
	for _, f := range features {
		t.AppendRow(table.Row{f.Name, f.Safety, f.Detail})
	}
	return t.Render()
}
