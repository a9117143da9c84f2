package root_test

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
	"unsafe"
)

// console is a terminal with an interactive shell.
type console struct {
	t     *testing.T
	f     *field
	user  *os.File // whose end of the terminal this is
	shown chan string
	all   string // that was shown since the last look
}

func newConsole(t *testing.T) *console {
	user, err := os.OpenFile("/dev/ptmx", os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = user.Close() })
	var number, locked uint32
	raw, err := user.SyscallConn()
	if err != nil {
		t.Fatal(err)
	}
	var unlocking, asking syscall.Errno
	err = raw.Control(func(fd uintptr) {
		_, _, unlocking = syscall.Syscall(syscall.SYS_IOCTL, fd, syscall.TIOCSPTLCK, uintptr(unsafe.Pointer(&locked)))
		_, _, asking = syscall.Syscall(syscall.SYS_IOCTL, fd, syscall.TIOCGPTN, uintptr(unsafe.Pointer(&number)))
	})
	if err != nil || unlocking != 0 || asking != 0 {
		t.Fatal(err, unlocking, asking)
	}
	tty, err := os.OpenFile(fmt.Sprintf("/dev/pts/%d", number), os.O_RDWR|syscall.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer tty.Close()
	c := &console{t: t, f: plainField(t), user: user, shown: make(chan string)}
	shell := exec.Command("sh", "-i")
	shell.Dir, shell.Env = c.f.dir, slices.Concat(c.f.env, []string{"PS1=ready> ", "ENV=", "KEY=" + c.f.key})
	shell.Stdin, shell.Stdout, shell.Stderr = tty, tty, tty
	shell.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	if err := shell.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { // the end of a session's leader hangs up on the others
		_ = shell.Process.Kill()
		_ = shell.Wait()
	})
	go func() {
		defer close(c.shown)
		for {
			b := make([]byte, 1000)
			n, err := user.Read(b)
			if err != nil {
				return
			}
			select {
			case c.shown <- string(b[:n]):
			case <-t.Context().Done():
				return
			}
		}
	}()
	c.see("ready>")
	return c
}

// keys presses keys.
func (c *console) keys(s string) {
	c.t.Helper()
	if _, err := io.WriteString(c.user, s); err != nil {
		c.t.Fatal(err)
	}
}

// see waits until the terminal shows the text, and returns what came before.
func (c *console) see(text string) (before string) {
	c.t.Helper()
	limit := time.After(20 * time.Second)
	for !strings.Contains(c.all, text) {
		select {
		case s, ok := <-c.shown:
			if c.all += s; !ok {
				c.t.Fatalf("the shell is gone; it showed %q, and not %q", c.all, text)
			}
		case <-limit:
			c.t.Fatalf("the terminal showed %q, and not %q", c.all, text)
		}
	}
	before, c.all, _ = strings.Cut(c.all, text)
	return before
}

// file writes a script.
func (c *console) file(name, text string) {
	c.t.Helper()
	if err := os.WriteFile(filepath.Join(c.f.dir, name), []byte(text), 0o600); err != nil {
		c.t.Fatal(err)
	}
}

// fifos makes pipes that processes wait for each other with.
func (c *console) fifos(names ...string) {
	c.t.Helper()
	for _, n := range names {
		if err := syscall.Mkfifo(filepath.Join(c.f.dir, n), 0o600); err != nil {
			c.t.Fatal(err)
		}
	}
}

// process reads the number of a process that the terminal shows.
func (c *console) process() int {
	c.t.Helper()
	c.see("pid ")
	pid, err := strconv.Atoi(c.see("\r\n"))
	if err != nil {
		c.t.Fatal(err)
	}
	return pid
}

// filter reads a line from the terminal, and has it then.
const filter = `echo "asks $((1+1))" >&2
read line </dev/tty
echo "pid $PPID" >&2
echo has >has
read go <go
echo "$line"
`

// TestTerminalOfShell lets a shell have its terminal back while a command has been
// given it that still runs: the shell keeps it when that ends.
func TestTerminalOfShell(t *testing.T) {
	for name, command := range map[string]string{
		"update": `pawl update --create "$KEY" -- sh ./filter`,
		"lock":   `pawl lock "$KEY" -- sh ./filter`,
	} {
		t.Run(name, func(t *testing.T) {
			c := newConsole(t)
			c.fifos("has", "go", "over")
			c.file("filter", filter)
			c.file("job", `(`+command+`; echo "code $?" >over) </dev/tty & read has <has`)
			c.keys("sh ./job\n")
			c.see("asks 2")
			c.keys("first\n")
			c.see("ready>")
			c.keys(`echo go >go; read code <over; echo "$code"` + "\n")
			c.see("code 0")
			c.keys("echo shell $((40+2)) lives\n")
			c.see("shell 42 lives")
		})
		t.Run(name+" stopped", func(t *testing.T) {
			c := newConsole(t)
			c.fifos("has", "go")
			c.file("filter", filter)
			c.keys(command + "\n")
			c.see("asks 2")
			c.keys("first\n")
			if err := syscall.Kill(c.process(), syscall.SIGSTOP); err != nil {
				t.Fatal(err)
			}
			c.see("ready>")
			c.keys(`bg; read has <has; echo go >go; wait; echo "over $((1+1))"` + "\n")
			c.see("over 2")
			c.keys("echo shell $((40+2)) lives\n")
			c.see("shell 42 lives")
		})
	}
}

// TestTerminalLater lets a filter ask while its update is in the background.
func TestTerminalLater(t *testing.T) {
	c := newConsole(t)
	c.fifos("has", "go")
	c.file("filter", filter)
	c.keys(`pawl update --create "$KEY" -- sh ./filter & echo "back $((1+1))"` + "\n")
	c.see("asks 2")
	c.keys(`echo "shell $((40+2)) reads"` + "\n")
	c.see("shell 42 reads")
	c.keys("(read has <has; echo go >go) & fg %1\n")
	c.see("sh ./filter\r\n") // which fg shows
	c.keys("first\n")
	c.see("ready>")
	c.keys(`pawl update --json "$KEY" -- grep first; echo "code $?"` + "\n")
	c.see("code 0")
}

// TestStoppedFilter stops a filter that wants nothing of the terminal, and then its
// update from the keyboard. Both go on with that.
func TestStoppedFilter(t *testing.T) {
	c := newConsole(t)
	c.file("filter", `echo "pid $$" >&2; kill -STOP $$; echo on`)
	c.keys(`pawl update --create "$KEY" -- sh ./filter` + "\n")
	pid := c.process()
	stopped := poll(func() bool {
		stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
		return err == nil && strings.Contains(string(stat), ") T ")
	})
	if !stopped {
		t.Fatal("the filter was not stopped")
	}
	c.keys("\x1a") // Ctrl-Z
	c.see("ready>")
	c.keys(`fg; echo "code $?"` + "\n")
	c.see("code 0")
}

// TestInterruptedUpdate presses Ctrl-C while a filter runs that makes little of it.
// It has run for a while, so that it had the terminal if it got it without asking.
func TestInterruptedUpdate(t *testing.T) {
	c := newConsole(t)
	c.file("filter", `trap 'echo partial; exit 0' INT; for i in 1 2 3; do pawl version >&2; done; echo "runs $((1+1))" >&2; sleep 600`)
	c.keys(`pawl update --create "$KEY" -- sh ./filter; echo "code $?"` + "\n")
	c.see("runs 2")
	c.keys("\x03")
	c.see("code 130")
	c.keys(`pawl update "$KEY" -- cat; echo "code $?"` + "\n")
	c.see("object not found")
}
