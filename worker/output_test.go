package worker_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"strings"
	"testing"

	"github.com/pawlhq/pawl/bucket"
	"github.com/pawlhq/pawl/bucket/buckettest"
	"github.com/pawlhq/pawl/event"
	"github.com/pawlhq/pawl/worker"
)

// The sizes are around the memory limit. No named temporary file may exist at any time.
func TestOutputsOfAnySize(t *testing.T) {
	const held = 4 << 20
	for _, c := range []struct {
		name        string
		size, piece int
	}{
		{"empty", 0, 1},
		{"small", 10, 3},
		{"all in memory", held, 1 << 20},
		{"one byte more", held + 1, 1 << 20},
		{"at once", 2 * held, 2 * held},
		{"large", 3*held + 7, 100_003},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := t.TempDir()
			t.Setenv("TMPDIR", dir)
			content := bytes.Repeat([]byte("0123456789abcdef"), c.size/16+1)[:c.size]
			inWorld(t, func(w *world) {
				n := w.start(toOut(func(_ context.Context, task *worker.Task) error {
					to, err := task.Output("application/x-test")
					if err != nil {
						return err
					}
					for rest := content; len(rest) > 0; rest = rest[min(c.piece, len(rest)):] {
						if _, err := to.Write(rest[:min(c.piece, len(rest))]); err != nil {
							return err
						}
						wantEmpty(t, dir)
					}
					return nil
				}))
				n.store.Next(buckettest.Put, buckettest.Lost) // the content is read again
				n.deliver(w.put("a", "one"))
				info, body, err := w.objects.Get(w.t.Context(), out("a"))
				if err != nil {
					t.Fatal(err)
				}
				got, err := io.ReadAll(body)
				if err != nil || !bytes.Equal(got, content) || info.Size != int64(c.size) || info.ContentType != "application/x-test" {
					t.Errorf("%d bytes of %s (%v), want %d", len(got), info.ContentType, err, c.size)
				}
			})
			wantEmpty(t, dir)
		})
	}
}

func wantEmpty(t *testing.T, dir string) {
	t.Helper()
	left, err := os.ReadDir(dir)
	if err != nil || len(left) != 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
}

// A store may read the body twice to sign it.
func TestOutputsCanBeReadTwice(t *testing.T) {
	for _, size := range []int{10, 5 << 20} {
		inWorld(t, func(w *world) {
			seekers := 0
			n := w.start(toOut(func(_ context.Context, task *worker.Task) error {
				return write(task, strings.Repeat("x", size))
			}), func(c *worker.Config) {
				c.Objects = bodies{c.Objects, func(r io.Reader) {
					if _, ok := r.(io.Seeker); ok {
						seekers++
					}
				}}
			})
			n.deliver(w.put("a", "one"))
			w.wantSettled("a")
			if seekers != 1 {
				t.Errorf("%d of 1 bodies of %d bytes can seek", seekers, size)
			}
		})
	}
}

type bodies struct {
	bucket.Store
	look func(io.Reader)
}

func (b bodies) Put(ctx context.Context, ref event.Object, o bucket.Object, c bucket.Condition) (string, error) {
	b.look(o.Body)
	return b.Store.Put(ctx, ref, o, c)
}

func TestOutputThatCannotBeSpooledFails(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir()+"/missing")
	inWorld(t, func(w *world) {
		n := w.start(toOut(func(_ context.Context, task *worker.Task) error {
			return write(task, strings.Repeat("x", 5<<20))
		}))
		n.deliver(w.put("a", "one"))
		if r := w.row("a"); r.Settled() || !strings.Contains(r.LastError, "buffer a large output") {
			t.Errorf("%q", r.LastError)
		}
		w.wantOutput("a", "")
	})
}

func TestSecondOutputReplacesTheFirst(t *testing.T) {
	inWorld(t, func(w *world) {
		fail := false
		n := w.start(toOut(func(_ context.Context, task *worker.Task) error {
			if err := write(task, strings.Repeat("x", 5<<20)); err != nil {
				return err
			}
			if err := write(task, "again"); err != nil || !fail {
				return err
			}
			return errors.New("broken pipe")
		}))
		n.deliver(w.put("a", "one"))
		w.wantOutput("a", "again")
		fail = true
		n.deliver(w.put("a", "two"))
		w.wantOutput("a", "again")
		if got := w.recorder.count("put out/"); got != 1 {
			t.Errorf("%d publishes, want 1", got)
		}
	})
}

func TestPublishStreamsContent(t *testing.T) {
	inWorld(t, func(w *world) {
		opened := 0
		n := w.start(toOut(func(_ context.Context, task *worker.Task) error {
			if err := write(task, "dropped"); err != nil {
				return err
			}
			return task.Publish("text/plain", 3, func() (io.ReadCloser, error) {
				opened++
				return io.NopCloser(strings.NewReader("new")), nil
			})
		}))
		n.store.Next(buckettest.Put, buckettest.Answer(bucket.ErrConflict))
		n.deliver(w.put("a", "one"))
		w.wantOutput("a", "new")
		if opened != 2 {
			t.Errorf("opened %d times for two requests", opened)
		}
	})
}

func TestPublishRejectsWrongSize(t *testing.T) {
	inWorld(t, func(w *world) {
		n := w.start(toOut(func(_ context.Context, task *worker.Task) error {
			return task.Publish("text/plain", 4, func() (io.ReadCloser, error) {
				return io.NopCloser(strings.NewReader("new")), nil
			})
		}))
		n.deliver(w.put("a", "one"))
		w.wantOutput("a", "")
		if r := w.row("a"); !r.Dead || !strings.Contains(r.LastError, "not 4 bytes long") {
			t.Errorf("dead %v: %q", r.Dead, r.LastError)
		}
	})
}

func TestOutputNeedsAPipelineWithOutput(t *testing.T) {
	for name, use := range map[string]func(task *worker.Task) error{
		"output":  func(task *worker.Task) error { _, err := task.Output("text/plain"); return err },
		"publish": func(task *worker.Task) error { return task.Publish("text/plain", 0, nil) },
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(w *world) {
				n := w.start(matchAll(func(_ context.Context, task *worker.Task) error {
					if task.HasOutput() {
						t.Error("it has no output")
					}
					return use(task)
				}))
				n.deliver(w.put("a", "one"))
				const want = "pipeline upper has no output: configure one (to)"
				if r := w.row("a"); !r.Dead || r.LastError != want {
					t.Errorf("dead %v: %q, want %q", r.Dead, r.LastError, want)
				}
			})
		})
	}
}

func TestRemovedObjectCannotBeOpened(t *testing.T) {
	inWorld(t, func(w *world) {
		n := w.start(matchAll(func(ctx context.Context, task *worker.Task) error {
			_, err := task.Open(ctx)
			return err
		}))
		n.deliver(w.event(in("a"), event.Removed))
		if r := w.row("a"); !r.Dead || r.LastError != "open s3://in/a: the object was removed" {
			t.Errorf("dead %v: %q", r.Dead, r.LastError)
		}
	})
}
