package cli

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/dustin/go-humanize"
	"github.com/spf13/cobra"

	"github.com/pawlhq/pawl/bucket"
	"github.com/pawlhq/pawl/files"
	"github.com/pawlhq/pawl/internal/config"
)

func newFilesAuditCommand(a *app) *cobra.Command {
	var o files.AuditOptions
	cmd := &cobra.Command{
		Use:   "audit",
		Short: "Compare the index with the bucket, and put right what differs",
		Long: `Audit lists the objects of the files and compares them with the index. Each difference
is looked at once more before anything is written: bytes of which no notification
came become visible, files whose bytes are gone or are others are lost, and what is
left of files that are gone is removed. Where nothing differs it writes nothing.

Objects that have the name of a file and are in no row of the index are removed,
too, and uploads in parts that nothing can complete any more, if they are few: an
index that was restored from a backup must not empty the bucket. If they are more
than 100, or more than 1 % of the objects, none is. Once you know that the index is
right, --limit says how many there may be. Objects with other names stay.

What cannot be looked at does not end an audit: it goes on with the others, says how
many there were, and exits with 1.

"pawl files serve" does the same an hour after it began, and every day.`,
		Example: `  pawl files audit --dry-run
  pawl files audit --limit 5000 --json`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if cmd.Flags().Changed("limit") && o.Limit <= 0 {
				return usage("--limit %d: want a number above 0", o.Limit)
			}
			return runFilesAudit(cmd.Context(), a, o)
		},
	}
	cmd.Flags().BoolVar(&o.DryRun, "dry-run", false, "find, and write nothing")
	cmd.Flags().Int64Var(&o.Limit, "limit", 0, "remove up to this `number` of objects without a row, or none (default: 100, and 1 % of the objects)")
	documentExitCodes(cmd, exitCodes+"  3  something differed: the report says what\n")
	return cmd
}

func runFilesAudit(ctx context.Context, a *app, o files.AuditOptions) (err error) {
	log, err := a.logger(a.Err, slog.LevelInfo)
	if err != nil {
		return err
	}
	ctx, stop := untilSignal(ctx, log)
	defer stop()
	m, err := a.configure(ctx, a.parts.LoadWithoutSources, log)
	if err != nil {
		return err
	}
	c := m.config.Files
	if c == nil {
		return errNoFiles(m.config)
	}
	if err := m.objects.Check(ctx, c.To.Bucket); err != nil {
		return err
	}
	objects := m.fileObjects(c)
	if !o.DryRun {
		objects.MayProve(c.To.Prefix)
	}
	service, err := m.fileService(ctx, c, objects, false)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, service.Index.Close()) }()
	began := time.Now()
	r, err := m.auditFiles(ctx, c, service, o)
	if printErr := a.printFilesAudit(&r, o, time.Since(began), err == nil); printErr != nil {
		return errors.Join(err, printErr)
	}
	if err == nil && r.Found() > 0 {
		return found()
	}
	return err
}

// auditFiles audits what lies below the service's prefix.
func (m *machine) auditFiles(ctx context.Context, c *config.Files, service *files.Service, o files.AuditOptions) (files.AuditReport, error) {
	return service.Audit(ctx, listedFiles(m.objects.List(ctx, c.To.Bucket, c.To.Prefix, "")), o)
}

func listedFiles(all iter.Seq2[bucket.Info, error]) iter.Seq2[files.Listed, error] {
	return func(yield func(files.Listed, error) bool) {
		for info, err := range all {
			if !yield(files.Listed{Key: info.Key, Size: info.Size, LastModified: info.ModTime}, err) {
				return
			}
		}
	}
}

// filesAuditJSON is a report with --json.
type filesAuditJSON struct {
	files.AuditReport
	Complete bool    `json:"complete"`
	DryRun   bool    `json:"dry_run"`
	Seconds  float64 `json:"seconds"`
}

func (a *app) printFilesAudit(r *files.AuditReport, o files.AuditOptions, took time.Duration, complete bool) error {
	took = took.Round(time.Millisecond)
	if a.json {
		return a.printJSON(filesAuditJSON{*r, complete, o.DryRun, took.Seconds()})
	}
	_, err := fmt.Fprint(a.Out, filesAuditText(r, o, took, complete))
	return err
}

func filesAuditText(r *files.AuditReport, o files.AuditOptions, took time.Duration, complete bool) string {
	var text strings.Builder
	what, done := "audited", "removed"
	switch {
	case !complete:
		what = "audited in part"
	case o.DryRun:
		what, done = "audited, without writing,", "to be removed"
	}
	fmt.Fprintf(&text, "%s %s objects and %s rows in %s\n", what, humanize.Comma(r.Objects), humanize.Comma(r.Rows), took)
	for _, state := range slices.Sorted(maps.Keys(r.Moved)) {
		fmt.Fprintf(&text, "  %d files: %s, by what the bucket holds\n", r.Moved[state], state)
	}
	if r.Leftovers > 0 {
		fmt.Fprintf(&text, "  %d objects of files that are gone or expired, or uploads in parts that are over: %s\n", r.Leftovers, done)
	}
	if r.Orphans > 0 && r.TooMany(o) {
		fmt.Fprintf(&text, "  %d objects or uploads in parts without a row: too many to remove. If the index is no old copy: --limit %d\n", r.Orphans, r.Orphans)
	} else if r.Orphans > 0 {
		fmt.Fprintf(&text, "  %d objects or uploads in parts without a row: %s\n", r.Orphans, done)
	}
	if r.Failed > 0 {
		fmt.Fprintf(&text, "  %d files could not be looked at: the next audit looks at them again\n", r.Failed)
	}
	if r.Foreign > 0 {
		fmt.Fprintf(&text, "  %d objects that have no name of a file: they stay\n", r.Foreign)
	}
	return text.String()
}

const (
	filesFirstAudit = time.Hour
	filesAudit      = 24 * time.Hour
)

// keepAuditing audits every day, until ctx ends.
func (m *machine) keepAuditing(ctx context.Context, c *config.Files, service *files.Service) {
	next := time.NewTimer(filesFirstAudit)
	defer next.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-next.C:
		}
		r, err := m.auditFiles(ctx, c, service, files.AuditOptions{})
		switch {
		case ctx.Err() != nil:
			return
		case err != nil:
			m.log.Warn("not all files could be audited; the next audit comes in a day", "error", err, "report", r)
		case r.Found() > 0:
			m.log.Warn("an audit found that index and bucket differed", "report", r)
		default:
			m.log.Info("audited the files", "objects", r.Objects, "rows", r.Rows)
		}
		next.Reset(filesAudit)
	}
}
