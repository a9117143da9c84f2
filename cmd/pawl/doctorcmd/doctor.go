// Package doctorcmd contains the command doctor, and the saved results of its checks.
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
		Short: "Test the guarantees of an object store, and report which features are safe",
		Long: `Doctor tests the object store of a bucket. It checks that the store rejects
writes and removals whose precondition does not hold, even with 32 concurrent
writers; that reads and listings show the latest write and removal; that a read
during writes returns complete content; and whether the store copies objects
conditionally. A store that silently ignores a precondition answers like a store
that honours it, until two writers conflict.

Doctor then reports which features of Pawl are safe with this store. If there is
a configuration file, it also reports for each pipeline of the bucket whether
notifications cover created and removed objects (yes, partly, no, or unknown if
the store cannot report its configuration). For each SQS source it reports
whether the queue accepts the longest notification of S3, 64 KiB. A queue with a
smaller MaximumMessageSize loses longer notifications.

The bucket must exist. Doctor sends about a thousand requests in a few seconds.
It writes about sixty small objects below the prefix and .pawl-doctor/, and
removes them at the end, even after an error. A second interruption leaves them
in the bucket. A pipeline that matches the whole bucket processes them. In a
versioned bucket their versions remain until a lifecycle rule removes them.
Doctor needs permission to read, write, remove and list objects. To check
notifications and queues, it also needs s3:GetBucketNotification and
sqs:GetQueueAttributes.

Doctor stores the result for locks in the user's cache folder. If locks are safe,
"pawl lock" and "pawl update" skip their own check for a week. If locks are not
safe, they reject the bucket until doctor finds that it is safe. An unclear result
discards an earlier success. If only listings are stale, "pawl lock" rejects
--shared and --semaphore.

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
	app.DocumentExitCodes(cmd, `  0  every feature is safe, or safe with a limit
  1  the examination or its cleanup failed
  2  wrong usage or configuration: no such bucket, no permission
  3  a feature is not safe, a pipeline gets no notifications, or a queue rejects long notifications
`)
	return cmd
}

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

func examine(ctx context.Context, a *app.App, store bucket.Store, name, prefix string) (*doctor.Report, error) {
	var o doctor.Options
	if app.IsTerminal(a.Err) {
		bar := progressbar.NewOptions(-1, progressbar.OptionSetWriter(a.Err), progressbar.OptionSetRenderBlankState(true),
			progressbar.OptionThrottle(100*time.Millisecond), progressbar.OptionClearOnFinish())
		defer func() { _ = bar.Finish() }() // a drawing error is harmless
		o.Progress = func(check string, done, total int) {
			bar.Describe(fmt.Sprintf("check %d of %d: %s", done+1, total, check))
		}
	}
	return doctor.Examine(ctx, store, name, prefix, o)
}

func doctorFailure(ctx context.Context, err error) error {
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil:
		return app.Failed(fmt.Errorf("interrupted: %w", err), "")
	case errors.Is(err, bucket.ErrDenied):
		return &app.Failure{Code: app.ExitUsage, Err: err, Hint: "doctor needs permission to list the bucket, and to read, write and remove objects below the prefix and .pawl-doctor/"}
	case errors.Is(err, bucket.ErrUnavailable), errors.Is(err, bucket.ErrUnclear):
		return app.Failed(err, "is the store running and reachable?")
	}
	return err
}

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
	t := app.PlainWriter("CHECK", "VERDICT", "PROPERTY")
	for _, c := range checks {
		t.AppendRow(table.Row{c.Name, c.Verdict, c.Means})
		if c.Detail != "" {
			t.AppendRow(table.Row{"", "", "found: " + app.Printable(c.Detail)})
		}
	}
	return t.Render()
}

func featuresTable(features []doctor.Feature) string {
	t := app.PlainWriter("FEATURE", "SAFETY", "REASON")
	for _, f := range features {
		t.AppendRow(table.Row{f.Name, f.Safety, f.Detail})
	}
	return t.Render()
}
