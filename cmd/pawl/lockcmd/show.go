package lockcmd

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"strings"
	"time"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/spf13/cobra"

	"github.com/pawlhq/pawl/bucket"
	"github.com/pawlhq/pawl/cmd/pawl/app"
	"github.com/pawlhq/pawl/event"
	"github.com/pawlhq/pawl/lock"
)

const readExitCodes = `  0  done
  1  failed: the lock does not exist, or is held under another token
 64  wrong usage or configuration, no permission, the object is not a lock, or
     several holders have the same name
 69  the object store is unavailable
`

func newLockLsCommand(a *app.App) *cobra.Command {
	var endpoint string
	cmd := &cobra.Command{
		Use:   "ls s3://bucket[/prefix]",
		Short: "List the locks below a prefix",
		Long: `List prints a line for each lease below the prefix: a lock, a reader
(….readers/N) or a slot of a semaphore (….slots/N). It shows other objects as "not a
lock", and leases that it cannot read as "unknown". It sends one request per object.

If a holder has crashed, the lock stays held until a waiting process has watched it
for its ttl and takes it over. RENEWED shows the time of the last renewal.`,
		Example: `  pawl lock ls s3://state/
  pawl lock ls s3://state/locks/ --json`,
		Args: oneArg,
		RunE: func(cmd *cobra.Command, args []string) error {
			return sysexit(runLockLs(cmd.Context(), a, args[0], endpoint))
		},
	}
	app.AddStoreFlags(cmd, &endpoint)
	app.DocumentExitCodes(cmd, readExitCodes)
	return cmd
}

func oneArg(cmd *cobra.Command, args []string) error {
	if len(args) != 1 {
		return usageError("%s takes one argument: want %s", cmd.CommandPath(), cmd.UseLine())
	}
	return nil
}

type lockJSON struct {
	Bucket    string    `json:"bucket"`
	Key       string    `json:"key"`
	KeyBase64 string    `json:"key_base64,omitempty"`
	State     string    `json:"state"` // held, released, not a lock, or unknown
	Token     int64     `json:"token,omitempty"`
	ID        string    `json:"id,omitempty"`
	Owner     string    `json:"owner,omitempty"`
	Host      string    `json:"host,omitempty"`
	PID       int       `json:"pid,omitempty"`
	Reason    string    `json:"reason,omitempty"`
	TTL       int64     `json:"ttl_ms,omitempty"`
	Limit     int       `json:"limit,omitempty"`
	Since     time.Time `json:"since,omitzero"`
	Written   time.Time `json:"written,omitzero"`
	Error     string    `json:"error,omitempty"`

	object event.Object
}

func toLockJSON(o event.Object, s *lock.Status) *lockJSON {
	r := &s.Record
	l := &lockJSON{
		Bucket: o.Bucket, State: string(r.State), Token: r.Token, ID: r.ID, Owner: r.Owner, Host: r.Host, PID: r.PID,
		Reason: r.Reason, TTL: r.TTL, Limit: r.Limit, Since: r.Since, Written: s.Written, object: o,
	}
	l.Key, l.KeyBase64 = app.KeyJSON(o.Key)
	switch {
	case errors.Is(s.Err, lock.ErrForeign):
		l.State, l.Error = notALock, s.Err.Error()
	case s.Err != nil:
		l.State, l.Error = "unknown", s.Err.Error()
	}
	return l
}

const notALock = "not a lock"

func (l *lockJSON) holder() string {
	who := app.Printable(l.Owner)
	if l.Host != "" {
		who += fmt.Sprintf("@%s (pid %d)", app.Printable(l.Host), l.PID)
	}
	if l.ID != "" {
		who += " as " + app.Printable(l.ID)
	}
	return who
}

func runLockLs(ctx context.Context, a *app.App, arg, endpoint string) error {
	name, prefix, err := app.BucketAndPrefix(arg)
	if err != nil {
		return err
	}
	b, err := openForReading(ctx, a, endpoint, name)
	if err != nil {
		return err
	}
	now, width := time.Now(), app.TerminalWidth(a.Out)
	t := app.PlainWriter("STATE", "LOCK", "TOKEN", "SINCE", "RENEWED", "HOLDER", "REASON")
	t.SetOutputMirror(a.Out)
	defer func() {
		if t.Length() > 0 {
			t.Render() // also before an error
		}
	}()
	n := 0
	var first error
	for s, err := range b.List(ctx, prefix) {
		if err = cmp.Or(err, storeError(&s)); err != nil {
			return err
		}
		first = cmp.Or(first, readError(&s))
		l := toLockJSON(event.Object{Bucket: name, Key: s.Key}, &s)
		if a.JSON {
			if err := a.PrintJSON(l); err != nil {
				return err
			}
			continue
		}
		t.AppendRow(l.row(now, width))
		if n++; n%app.TablePage == 0 {
			t.Render()
			t.ResetHeaders()
			t.ResetRows()
		}
	}
	return first
}

// After storeError the caller stops, because further reads would also time out.
func storeError(s *lock.Status) error {
	if errors.Is(s.Err, bucket.ErrUnavailable) {
		return s.Err
	}
	return nil
}

// A lease of a newer Pawl is not an error.
func readError(s *lock.Status) error {
	if errors.Is(s.Err, lock.ErrForeign) || errors.Is(s.Err, lock.ErrNewer) {
		return nil
	}
	return s.Err
}

func (l *lockJSON) row(now time.Time, width int) table.Row {
	if l.Error != "" {
		reason := app.OneLine(l.Error, width)
		if l.State == notALock {
			reason = ""
		}
		return table.Row{l.State, app.Shorten(l.object.String(), width), "-", "-", "-", "", reason}
	}
	row := table.Row{l.State, app.Shorten(l.object.String(), width), l.Token, app.RelativeTime(l.Since, now)}
	if l.State != string(lock.Held) {
		return row
	}
	return append(row, app.RelativeTime(l.Written, now), l.holder(), app.OneLine(l.Reason, width))
}

// openForReading does not test the store.
func openForReading(ctx context.Context, a *app.App, endpoint, name string) (*lock.Bucket, error) {
	store, err := a.Store(ctx, endpoint)
	if err != nil {
		return nil, err
	}
	return lock.Proved(boundedListings{store}, name), nil
}

func newLockShowCommand(a *app.App) *cobra.Command {
	var endpoint string
	cmd := &cobra.Command{
		Use:   "show s3://bucket/key",
		Short: "Show who holds a lock, since when and why",
		Long: `Show prints the lease of a lock, and the leases of its readers and slots.

If a holder has crashed, the lock stays held until a waiting process has watched it
for its ttl and takes it over. The time of the last renewal is by the store's clock.`,
		Example: `  pawl lock show s3://state/deploy
  pawl lock show s3://state/deploy --json | jq -r 'select(.state == "held") | "\(.key) \(.token)"'`,
		Args: oneArg,
		RunE: func(cmd *cobra.Command, args []string) error {
			return sysexit(runLockShow(cmd.Context(), a, args[0], endpoint))
		},
	}
	app.AddStoreFlags(cmd, &endpoint)
	app.DocumentExitCodes(cmd, readExitCodes)
	return cmd
}

func runLockShow(ctx context.Context, a *app.App, arg, endpoint string) error {
	o, err := oneObject(arg)
	if err != nil {
		return err
	}
	b, err := openForReading(ctx, a, endpoint, o.Bucket)
	if err != nil {
		return err
	}
	found := 0
	var first error
	for s, err := range leases(ctx, b, o.Key, leaseSuffixes...) {
		switch err = cmp.Or(err, storeError(&s)); {
		case err != nil:
			return err
		case s.Key == o.Key && s.Err != nil:
			return s.Err
		}
		found++
		first = cmp.Or(first, readError(&s))
		if err := printLock(a, toLockJSON(event.Object{Bucket: o.Bucket, Key: s.Key}, &s)); err != nil {
			return err
		}
	}
	if found == 0 {
		return missingLock(o)
	}
	return first
}

var leaseSuffixes = []string{".readers/", ".slots/"}

// leases yields the lease of a lock, and then those of its readers and slots. The lock's own object
// is the first key with its key as prefix.
func leases(ctx context.Context, b *lock.Bucket, key string, beside ...string) iter.Seq2[lock.Status, error] {
	return func(yield func(lock.Status, error) bool) {
		for s, err := range b.List(ctx, key) {
			if (err != nil || s.Key == key) && !yield(s, err) {
				return
			}
			break
		}
		for _, part := range beside {
			for s, err := range b.List(ctx, key+part) {
				if !yield(s, err) {
					return
				}
			}
		}
	}
}

func printLock(a *app.App, l *lockJSON) error {
	if a.JSON {
		return a.PrintJSON(l)
	}
	_, err := fmt.Fprint(a.Out, l.text(time.Now()))
	return err
}

func (l *lockJSON) text(now time.Time) string {
	var out strings.Builder
	line := func(name, value string) {
		if value != "" {
			fmt.Fprintf(&out, "  %-8s %s\n", name, value)
		}
	}
	at := func(t time.Time) string { return fmt.Sprintf("%s (%s)", app.FormatTime(t), app.RelativeTime(t, now)) }
	fmt.Fprintf(&out, "%s: %s\n", l.object, l.State)
	if l.Error != "" {
		line("error", app.Printable(l.Error))
		return out.String()
	}
	line("token", fmt.Sprint(l.Token))
	line("since", at(l.Since))
	if l.State == string(lock.Held) {
		ttl := time.Duration(l.TTL) * time.Millisecond
		line("holder", l.holder())
		line("reason", app.Printable(l.Reason))
		line("renewed", at(l.Written))
		line("ttl", fmt.Sprintf("%v: if the holder has crashed, another process can acquire the lock after watching it for this time plus 5 %%", ttl))
	}
	if l.Limit > 0 {
		line("limit", fmt.Sprintf("one of %d slots", l.Limit))
	}
	return out.String()
}
