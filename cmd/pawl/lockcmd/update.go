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
		Short: "Change an object safely under concurrent changes",
		Long: `Update reads an object, passes it to a filter on standard input, and writes the
filter's standard output if the object has not changed in between. Otherwise it
starts again. The filter runs once per attempt, so it should have no side effects.
An update is neither lost nor applied twice, unless the object is deleted meanwhile.
If the content is unchanged, Update writes nothing.

Update passes the filter's standard error through. If the filter fails, Update
writes nothing and exits with the filter's exit code. The filter runs in its own
process group. A signal to this command, such as Ctrl-C, ends that group. The
filter has no terminal: it cannot ask for a password or be an editor. The object is
held in memory, and may have up to 64 MiB. Update keeps the metadata, the content
type, Cache-Control, Content-Disposition, Content-Encoding and Content-Language.
It does not keep tags, Expires, a redirect, object locks and the storage class.
Pawl's own metadata (pawl-update…) identifies its write if an answer is lost.

If the filter prints nothing, the update fails, unless you set --allow-empty. If
the object holds JSON, by its content type or a name that ends in .json, output that
is not JSON is rejected.

While the store is unavailable, Update retries for a minute.

If an answer is lost and the content returns to an earlier state, Update may take
another writer's content for its own. Let every update write something new.

--json prints the result: written, tries, size.`,
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
	flags.BoolVar(&o.config.Create, "create", false, "create the object if it is missing; the filter then reads nothing")
	flags.Int64Var(&o.config.Fence, "fence", 0, "fencing `token` of the lock that you hold; fail if the object was updated under a higher one")
	flags.IntVar(&o.config.Tries, "tries", 50, "maximum number of attempts while others change the object")
	flags.StringVar(&o.contentType, "content-type", "", "content `type` of the object (default unchanged)")
	flags.BoolVar(&o.allowEmpty, "allow-empty", false, "write an empty object if the filter prints nothing")
	app.AddStoreFlags(cmd, &o.endpoint)
	cmd.SetFlagErrorFunc(flagUsageError)
	app.DocumentExitCodes(cmd, updateExitCodes)
	return cmd
}

const updateExitCodes = `   0  written, or unchanged
   N  the filter failed with N, or with 128+N by signal N: nothing was written
   1  nothing was written for another reason, for example a missing object
  64  wrong usage or configuration, no permission, an object that is too large, or a
      store that ignores preconditions: nothing was written
  69  the object store is unavailable: nothing was written
  74  unknown whether the object was written: the answer was lost, and then others
      changed the object, the store became unavailable, or a signal arrived; or the
      object was written, and the result could not be printed
  75  other writers changed the object during every attempt: nothing was written
  76  the object was updated under a higher fencing token: nothing was written
 126  the filter cannot be executed
 127  the filter was not found
 128+N signal N ended the update: nothing was written
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

type updateJSON struct {
	Written bool `json:"written"`
	Tries   int  `json:"tries"`
	Size    int  `json:"size"` // in bytes
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
		return app.Failed(err, "use --create to create it: the filter then gets empty input")
	case err != nil:
		return err
	case a.JSON:
		return printUpdateResult(a, object, &done)
	}
	return nil
}

// storeTimeout is also the time for which package lock retries an update.
const storeTimeout = time.Minute

func printUpdateResult(a *app.App, object event.Object, done *lock.Updated) error {
	err := a.PrintJSON(updateJSON{done.Written, done.Tries, len(done.Content.Body)})
	if err != nil && done.Written {
		return &app.Failure{Code: exitUnsure, Err: fmt.Errorf("%s was written, but its result could not be printed: %w", object, err)}
	}
	return err
}

// filterGrace bounds the time from SIGTERM to the filter's end, and from there to the end of its
// output.
const filterGrace = 5 * time.Second

type filterRun struct {
	path    string
	command []string
	input   []byte
	stderr  io.Writer
}

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
		return nil, fmt.Errorf("%s was ended; nothing was written: %w", name, context.Cause(ctx))
	case out.full:
		return nil, usageError("%s printed more than %d bytes, the maximum for an update: nothing was written", name, lock.MaxUpdate)
	case errors.Is(err, exec.ErrWaitDelay):
		return nil, fmt.Errorf("%s left a process that holds its output open: let it wait for that process; nothing was written", name)
	case !exited:
		return nil, fmt.Errorf("%s failed; nothing was written: %w", name, err)
	}
	code := exit.ExitCode()
	if s, ok := exit.Sys().(syscall.WaitStatus); ok && s.Signaled() {
		code = exitBySignal(s.Signal())
	}
	return nil, &commandError{code, fmt.Errorf("%s failed; nothing was written: %w", name, err)}
}

type boundedBuffer struct {
	content bytes.Buffer // not embedded: its ReadFrom has no limit
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
