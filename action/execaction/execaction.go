// Package execaction runs a command for each object.
//
// The object's content is on standard input; of a removed object it is empty.
// Where the pipeline has an output, standard output becomes it, once the
// command has exited with 0. The facts of the attempt are in the environment:
// PAWL_PIPELINE, PAWL_BUCKET, PAWL_KEY, PAWL_KIND (created or removed),
// PAWL_ETAG, PAWL_VERSION_ID, PAWL_SIZE, PAWL_FENCE, PAWL_ATTEMPT and
// PAWL_IDEMPOTENCY_KEY.
//
// Exit status 0 is done, 65 (EX_DATAERR of sysexits.h) a permanent error, and
// everything else is tried again. A command that prints more than it may is stopped,
// which is a permanent error too. One that cannot be started for want of descriptors,
// processes or memory is tried again until it can; no attempt is counted. If five objects
// end it with the same status, without a success between, that is an outage; see
// [pawl.OutageIfShared].
//
// The command runs in a process group of its own, which is terminated when the
// lease is lost: by SIGTERM, and 2 seconds later by SIGKILL. What is left of
// the group when the command has ended is killed too: nothing of an attempt
// outlives it. (On systems without process groups the command alone is killed.)
// If the content cannot be read to its end, the group is ended in the same way
// before standard input is closed, so that half an object does not pass for a
// whole one. Against the death of Pawl itself there is PAWL_SIZE to compare with.
package execaction

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"strings"
	"time"

	"github.com/pawlhq/pawl"
	"github.com/pawlhq/pawl/action"
	"github.com/pawlhq/pawl/event"
)

// What a command may do where Config says nothing.
const (
	DefaultTimeout         = 10 * time.Minute
	DefaultMaxOutput int64 = 256 << 20 // bytes
)

// grace is how long a terminated command may take to end, and how long the
// processes that an ended one leaves behind may hold on to its output. It is
// shorter than the margin between the cancellation of a task and the end of its
// lease.
const grace = 2 * time.Second

// Config says what to run. Command is required.
type Config struct {
	// Command is the program and its arguments, without a shell. A program
	// without a slash is looked for in PATH, once, by New.
	Command []string `yaml:"command"`
	// Env is what the command gets to see besides the PAWL_ variables and
	// PATH, HOME, TMPDIR, LANG, TZ, SSL_CERT_FILE and SSL_CERT_DIR: an entry
	// NAME=value sets a variable, an entry NAME passes on Pawl's own, if
	// there is one. Nothing else of Pawl's environment, where credentials
	// are, reaches the command.
	Env []string `yaml:"env"`
	// Timeout ends an attempt that runs longer; it is tried again. Default
	// 10 min.
	Timeout time.Duration `yaml:"timeout"`
	// MaxOutput is how many bytes the command may print on standard output where
	// that becomes the output. They are held in a temporary file. One that prints
	// more is stopped, and that is a permanent error. Default 256 MiB.
	MaxOutput int64 `yaml:"max_output"`
	// ContentType of the output. Default "application/octet-stream".
	ContentType string `yaml:"content_type"`
	// Logger is told at debug level what a command printed that nobody
	// wanted. Default slog.Default().
	Logger *slog.Logger `yaml:"-"`
}

// inherited are the variables that nearly every program needs and that hold no
// secrets.
var inherited = []string{"PATH", "HOME", "TMPDIR", "LANG", "TZ", "SSL_CERT_FILE", "SSL_CERT_DIR"}

type handler struct {
	path        string
	command     []string
	env         []string
	timeout     time.Duration
	maxOutput   int64
	grace       time.Duration
	contentType string
	log         *slog.Logger
}

// New returns a handler that runs c.Command. A command that cannot be found is
// an error at once.
func New(c Config) (pawl.Handler, error) {
	return newHandler(c)
}

func newHandler(c Config) (*handler, error) {
	if len(c.Command) == 0 || c.Command[0] == "" {
		return nil, errors.New("exec: command is missing")
	}
	if c.Timeout < 0 {
		return nil, fmt.Errorf("exec: timeout %v: must be positive", c.Timeout)
	}
	if c.MaxOutput < 0 {
		return nil, fmt.Errorf("exec: max_output %d: must be positive", c.MaxOutput)
	}
	path, err := exec.LookPath(c.Command[0])
	if err != nil {
		return nil, fmt.Errorf("exec: cannot run the command (install it, or give its full path): %w", err)
	}
	env, err := environment(c.Env)
	if err != nil {
		return nil, err
	}
	return &handler{
		path:        path,
		command:     c.Command,
		env:         env,
		timeout:     cmp.Or(c.Timeout, DefaultTimeout),
		maxOutput:   cmp.Or(c.MaxOutput, DefaultMaxOutput),
		grace:       grace,
		contentType: cmp.Or(c.ContentType, "application/octet-stream"),
		log:         cmp.Or(c.Logger, slog.Default()),
	}, nil
}

// environment returns the part of the environment that is the same for all
// attempts.
func environment(entries []string) ([]string, error) {
	var env []string
	pass := func(name string) {
		if value, ok := os.LookupEnv(name); ok {
			env = append(env, name+"="+value)
		}
	}
	for _, name := range inherited {
		pass(name)
	}
	for _, entry := range entries {
		name, _, set := strings.Cut(entry, "=")
		switch {
		case name == "" || strings.ContainsRune(entry, 0):
			return nil, errors.New("exec: env: an entry has no name, or a NUL byte") // its value may be a secret
		case strings.HasPrefix(name, "PAWL_"):
			return nil, fmt.Errorf("exec: env: %s: names that begin with PAWL_ are reserved", event.Quote(name))
		case set:
			env = append(env, entry)
		default:
			pass(name)
		}
	}
	return env, nil
}

func (h *handler) Handle(ctx context.Context, t *pawl.Task) error {
	facts := action.FactsOf(t).Environ()
	for _, f := range facts {
		if name, value, _ := strings.Cut(f, "="); strings.ContainsRune(value, 0) {
			return pawl.Permanent(fmt.Errorf("%s: %s holds a NUL byte, which no environment can carry", t.Object, name))
		}
	}
	reading, stop := context.WithCancel(ctx)
	defer stop()
	r := &execution{handler: h, facts: facts, stopReading: stop}
	if t.Kind == event.Created {
		body, err := t.Open(reading)
		if err != nil {
			return err
		}
		defer func() { _ = body.Close() }() // it was only read from
		r.content = body
	}
	if t.HasOutput() {
		out, err := t.Output(h.contentType)
		if err != nil {
			return err
		}
		r.output = out
	}
	if err := r.execute(ctx); err != nil {
		return fmt.Errorf("%s: %w", t.Object, err)
	}
	h.log.DebugContext(ctx, "command done", "object", t.Object.String(), "command", h.command[0],
		"stdout", action.Excerpt(r.stdout.last), "stderr", action.Excerpt(r.stderr.last))
	return nil
}

// name is what errors call the command. Arguments may hold secrets.
func (h *handler) name() string { return event.Quote(h.command[0]) }

var _ io.Writer = (*tail)(nil)

// tail keeps the last bytes written to it.
type tail struct{ last []byte }

func (t *tail) Write(b []byte) (int, error) {
	n := len(b)
	b = b[max(0, len(b)-action.MaxExcerpt):]
	keep := min(len(t.last), action.MaxExcerpt-len(b))
	t.last = append(append(make([]byte, 0, action.MaxExcerpt), t.last[len(t.last)-keep:]...), b...)
	return n, nil
}
