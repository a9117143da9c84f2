package lockcmd

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"mime"
	"os/exec"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/pawlhq/pawl/bucket"
	"github.com/pawlhq/pawl/cmd/pawl/app"
	"github.com/pawlhq/pawl/cmd/pawl/doctorcmd"
	"github.com/pawlhq/pawl/cmd/pawl/supervise"
	"github.com/pawlhq/pawl/event"
	"github.com/pawlhq/pawl/lock"
)

// updateOptions are the flags of "pawl update".
type updateOptions struct {
	endpoint    string
	contentType string
	allowEmpty  bool
	config      lock.UpdateConfig
}

// NewUpdateCommand returns the command update.
func NewUpdateCommand(a *app.App) *cobra.Command {
	var o updateOptions
	cmd := &cobra.Command{
		Use:   "update [flags] s3://bucket/key -- filter [argument ...]",
		Short: "Change an object safely while others change it, too",
		Long: `Update reads an object, gives it to a filter on standard input, and writes what
the filter prints on standard output, if the object still is what was read.
Otherwise it begins again: the filter runs once for each try, so it should do
nothing but compute. An update is neither lost nor applied twice, as long as
nobody deletes the object, and nothing is written when nothing has changed.

The filter's standard error is passed through. If it fails, nothing is written,
and its exit code is that of this command. It runs in a process group of its own.
A signal to this command, such as Ctrl-C, ends that group. The filter has no
terminal: it cannot ask for a password or be an editor. The object is held in
memory, and may have 64 MiB. Metadata and content type stay, and Cache-Control,
Content-Disposition,
-Encoding and -Language; what else an object has (tags, Expires, a redirect, a
lock of the store's, its storage class) is that of a new one. Pawl's own metadata
(pawl-update…) tell one's own write when an answer is lost.

A filter that prints nothing has failed, unless --allow-empty says otherwise. What
holds JSON, by its content type or a name that ends in .json, is not overwritten by
what is none.

While the store is unavailable it is asked again, for a minute.

An answer that is lost, where contents come back to exactly what they were, can be
taken for another's: let every update leave something new.

With --json the result is printed: written, tries, size.`,
		Example: `  pawl update s3://state/counter.json -- jq '.n += 1'
  pawl update --create s3://state/counter.json -- jq -s '.[0] | .n += 1'
  pawl update --create --content-type text/plain s3://state/log.txt -- sh -c 'cat; date'
  pawl update --fence "$PAWL_LOCK_TOKEN" s3://state/site.json -- ./edit`,
		Args: cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			object, filter, err := splitArgs(cmd, args)
			if err == nil {
				err = o.check(cmd)
			}
			if err != nil {
				return err
			}
			return sysexit(runUpdate(cmd.Context(), a, object, filter, &o))
		},
	}
	flags := cmd.Flags()
	flags.BoolVar(&o.config.Create, "create", false, "make the object if there is none: the filter then reads nothing")
	flags.Int64Var(&o.config.Fence, "fence", 0, "fencing `token` of the lock that is held: refuse if the object, which keeps it, was updated under a higher one")
	flags.IntVar(&o.config.Tries, "tries", 50, "how often to try, at most, while others are faster")
	flags.StringVar(&o.contentType, "content-type", "", "content `type` to write (default that of the object)")
	flags.BoolVar(&o.allowEmpty, "allow-empty", false, "write an empty object if the filter prints nothing")
	app.AddStoreFlags(cmd, &o.endpoint)
	cmd.SetFlagErrorFunc(flagUsageError)
	app.DocumentExitCodes(cmd, updateExitCodes)
	return cmd
}

const updateExitCodes = `   0  written, or there was nothing to change
   N  the filter failed with N, or 128+N by signal N: nothing was written
   1  nothing was written for another reason: there is no such object, say
  64  wrong usage or configuration, no permission, too large, or the store ignores
      preconditions: nothing was written
  69  the object store is unavailable: nothing was written
  74  it is not known whether it was written: the answer was lost, and then others
      changed the object, the store went away, or a signal ended it; or it was
      written, and only the result could not be printed: the error says which
  75  others were faster every time: nothing was written
  76  the object was updated under a higher fencing token: nothing was written
 126  the filter cannot be run
 127  there is no such filter
 128+N signal N ended it: nothing was written
`

func (o *updateOptions) check(cmd *cobra.Command) error {
	given := cmd.Flags().Changed
	switch {
	case given("fence") && o.config.Fence < 1:
		return usageError("--fence %d: a token is at least 1", o.config.Fence)
	case o.config.Tries < 1:
		return usageError("--tries %d: must be at least 1", o.config.Tries)
	case o.contentType != "":
		kind, _, err := mime.ParseMediaType(o.contentType)
		if err != nil || !strings.Contains(kind, "/") {
			return usageError("--content-type %s: want type/subtype", event.Quote(o.contentType))
		}
	}
	return nil
}

// updateJSON is the result with --json.
type updateJSON struct {
	Written bool `json:"written"`
	Tries   int  `json:"tries"`
	Size    int  `json:"size"` // of the content
}

func runUpdate(ctx context.Context, a *app.App, object event.Object, command []string, o *updateOptions) error {
	path, err := lookUpProgram(command[0])
	if err != nil {
		return err
	}
	signals, stop := receiveSignals()
	defer stop()
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	defer signals.cancelAt(cancel)()
	var b *lock.Bucket
	err = a.Retry(ctx, storeTimeout, unavailable, func() (err error) {
		b, err = doctorcmd.OpenProven(ctx, a, o.endpoint, object, "")
		return err
	})
	if err != nil {
		return err
	}
	change := func(ctx context.Context, c lock.Content) (lock.Content, error) {
		if o.contentType != "" {
			c.ContentType = o.contentType
		}
		was := c
		f := filterRun{path: path, command: command, input: c.Body, stderr: a.Err}
		if c.Body, err = f.run(ctx); err == nil {
			err = o.checkContent(object, command[0], was, c)
		}
		return c, err
	}
	done, err := b.Update(ctx, object.Key, change, o.config)
	switch {
	case errors.Is(err, bucket.ErrNotFound) && !o.config.Create && sysexitCode(err) == 0:
		return app.Failed(err, "--create makes it: the filter then reads nothing")
	case err != nil:
		return err
	case a.JSON:
		return printUpdateResult(a, object, &done)
	}
	return nil
}

// patience is for how long the proof of a store that is unavailable is repeated: as
// long as package lock repeats the rest of an update.
const storeTimeout = time.Minute

// tellUpdate prints the result.
func printUpdateResult(a *app.App, object event.Object, done *lock.Updated) error {
	err := a.PrintJSON(updateJSON{done.Written, done.Tries, len(done.Content.Body)})
	if err != nil && done.Written {
		return &app.Failure{Code: exitUnsure, Err: fmt.Errorf("%s was written, and only the result is lost: %w", object, err)}
	}
	return err
}

// filterGrace is what a filter has left after SIGTERM, and what may hold its
// output open after its end.
const filterGrace = 5 * time.Second

// filterRun is one run of a filter.
type filterRun struct {
	path    string
	command []string
	input   []byte
	stderr  io.Writer
}

// run returns what the filter makes of its input.
func (f *filterRun) run(ctx context.Context) ([]byte, error) {
	cmd := exec.CommandContext(ctx, f.path)
	cmd.Args = f.command
	var out boundedBuffer
	cmd.Stdin, cmd.Stdout, cmd.Stderr = bytes.NewReader(f.input), &out, f.stderr
	supervise.NewGroup(cmd)
	cmd.WaitDelay = filterGrace
	name := event.Quote(f.command[0])
	if err := cmd.Start(); err != nil {
		return nil, cannotRun(f.command[0], err)
	}
	err := cmd.Wait()
	if ctx.Err() != nil || out.full || errors.Is(err, exec.ErrWaitDelay) {
		supervise.KillGroup(cmd)
	}
	exit, exited := errors.AsType[*exec.ExitError](err)
	switch {
	case err == nil:
		return out.content.Bytes(), nil
	case ctx.Err() != nil:
		return nil, fmt.Errorf("%s was ended, and nothing was written: %w", name, context.Cause(ctx))
	case out.full:
		return nil, usageError("%s printed more than %d bytes, which is what an object may have here: nothing was written", name, lock.MaxUpdate)
	case errors.Is(err, exec.ErrWaitDelay):
		return nil, fmt.Errorf("%s left a process behind that holds its output open, and nothing was written: have it wait for that", name)
	case !exited:
		return nil, fmt.Errorf("%s failed, and nothing was written: %w", name, err)
	}
	code := exit.ExitCode()
	if s, ok := exit.Sys().(syscall.WaitStatus); ok && s.Signaled() {
		code = exitBySignal(s.Signal())
	}
	return nil, &commandError{code, fmt.Errorf("%s failed, and nothing was written: %w", name, err)}
}

// bounded is a buffer that takes no more than may be written.
type boundedBuffer struct {
	content bytes.Buffer // not embedded: its ReadFrom knows no bound
	full    bool
}

var errFull = errors.New("too large")

func (b *boundedBuffer) Write(p []byte) (int, error) {
	if b.content.Len()+len(p) > lock.MaxUpdate {
		b.full = true
		return 0, errFull
	}
	return b.content.Write(p)
}
