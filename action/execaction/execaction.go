// Package execaction runs a command for each object.
//
// The object's content is on standard input, which is empty for a removed object. If the pipeline
// has an output, standard output becomes the output after the command has exited with 0. The
// PAWL_ environment variables contain the [action.Facts]. With tracing, TRACEPARENT contains the
// W3C trace context.
//
// Exit status 0 completes the attempt, and 65 (EX_DATAERR of sysexits.h) is a permanent error.
// Pawl retries after every other status. If five objects fail with the same status without a
// success in between, that is an outage; see [pawl.OutageIfShared]. If a command cannot start for lack of
// file descriptors, processes or memory, Pawl retries without counting attempts.
//
// The command runs in its own process group. When the lease is lost, Pawl sends SIGTERM to the
// group, and SIGKILL 2 seconds later. It does the same if reading the content fails, and only
// then closes standard input, so that the command cannot mistake a part for the whole. When the
// command has ended, Pawl kills the rest of the group. If Pawl itself dies, standard input ends
// early: the command can compare the length with PAWL_SIZE.
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

// Defaults of Config.
const (
	DefaultTimeout         = 10 * time.Minute
	DefaultMaxOutput int64 = 256 << 20 // bytes
)

// grace is the time between SIGTERM and SIGKILL, and for remaining processes to close the output.
// It must be shorter than the time between the cancellation of a task and the end of its lease.
const grace = 2 * time.Second

// Config configures a handler. Command is required.
type Config struct {
	// Command is the program, which New looks up in PATH, and its arguments, without a shell.
	Command []string `yaml:"command"`
	// Env adds variables. An entry NAME=value sets one, and an entry NAME passes on Pawl's own.
	// The command also receives the PAWL_ variables and PATH, HOME, TMPDIR, LANG, TZ,
	// SSL_CERT_FILE and SSL_CERT_DIR. The rest of Pawl's environment may contain credentials.
	Env []string `yaml:"env"`
	// Timeout limits the command. After it, the attempt fails and Pawl retries. Default 10 min.
	Timeout time.Duration `yaml:"timeout"`
	// MaxOutput limits an output in bytes. A larger one is a permanent error. Pawl stores
	// standard output in a temporary file. Default 256 MiB.
	MaxOutput int64 `yaml:"max_output"`
	// ContentType of the output; default "application/octet-stream".
	ContentType string `yaml:"content_type"`
	// Logger logs unused output at debug level. Default slog.Default().
	Logger *slog.Logger `yaml:"-"`
}

// Most programs need these variables, which contain no secrets.
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

// New returns a handler that runs c.Command. It fails if the program does not exist.
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
	if t.Traceparent != "" {
		facts = append(facts, "TRACEPARENT="+t.Traceparent)
	}
	reading, stop := context.WithCancel(ctx)
	defer stop()
	r := &execution{handler: h, facts: facts, stopReading: stop}
	if t.Kind == event.Created {
		body, err := t.Open(reading)
		if err != nil {
			return err
		}
		defer func() { _ = body.Close() }()
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

// Arguments may contain secrets.
func (h *handler) name() string { return event.Quote(h.command[0]) }

var _ io.Writer = (*tail)(nil)

// tail keeps the last bytes.
type tail struct{ last []byte }

func (t *tail) Write(b []byte) (int, error) {
	n := len(b)
	b = b[max(0, len(b)-action.MaxExcerpt):]
	keep := min(len(t.last), action.MaxExcerpt-len(b))
	t.last = append(append(make([]byte, 0, action.MaxExcerpt), t.last[len(t.last)-keep:]...), b...)
	return n, nil
}
