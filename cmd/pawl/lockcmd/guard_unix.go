//go:build unix

package lockcmd

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/pawlhq/pawl/lock"
)

// guardName is the command that "pawl lock" starts beside the one that it runs.
const guardName = "lock-guard"

// What a guard says: that it knows of the lease and that it is ready, and that it
// ends the group.
const (
	guardReady = "ready"
	guardOver  = "over"
)

// guard ends a process group when its lease is over, whatever has become of the
// process that holds the lease. It is in the group, and leads it.
type guard struct {
	group  int
	backTo int // the holder's group
	grace  time.Duration
	hurry  bool
	within bool // the holder itself runs under another lock
	say    func(string)
}

// countdown is a time that runs since a moment.
type countdown struct {
	since  time.Time
	length time.Duration
}

// left is how much of it is left by the clock that says less: the monotonic one
// stands still while the machine sleeps.
func (c countdown) left(now time.Time) time.Duration {
	return c.length - max(now.Sub(c.since), now.Round(0).Sub(c.since.Round(0)))
}

// readOrders returns what the holder says of its lease, until that ends or cannot
// be understood.
func readOrders(from io.Reader) <-chan countdown {
	terms := make(chan countdown)
	go func() {
		defer close(terms)
		lines := bufio.NewScanner(from)
		for lines.Scan() {
			var left, until int64
			now := time.Now()
			if n, _ := fmt.Sscanf(lines.Text(), "%d %d", &left, &until); n != 2 {
				return
			}
			// The holder may have stood still between looking at its clock and
			// saying so.
			terms <- countdown{now, min(time.Duration(left), time.Unix(0, until).Sub(now))}
		}
	}()
	return terms
}

// glance is how often a guard looks at its clocks.
const glance = time.Second

// farewell is what a command has left whose holder is gone. Under another lock it
// is nothing: the holder may have been ended because that is over.
func (g *guard) farewell(left time.Duration) time.Duration {
	if g.within {
		return 0
	}
	return min(time.Second, left+g.grace)
}

// watch waits until the lease is over, or the holder is gone, and ends the group.
func (g *guard) watch(terms <-chan countdown) {
	lease, ok := <-terms
	if !ok {
		return // there is no command yet
	}
	g.say(guardReady)
	for {
		left := lease.left(time.Now())
		if left <= 0 { // by how much it is late, the command has less
			g.end(g.grace + left)
			return
		}
		select {
		case next, ok := <-terms:
			if !ok {
				g.end(g.farewell(lease.left(time.Now())))
				return
			}
			lease = next
		case <-time.After(min(left, glance)):
		}
	}
}

// end ends the group.
func (g *guard) end(grace time.Duration) {
	g.say(guardOver)
	if !g.hurry {
		for _, n := range []syscall.Signal{syscall.SIGTERM, syscall.SIGCONT} {
			_ = syscall.Kill(-g.group, n)
		}
		rest := countdown{time.Now(), grace}
		for left := grace; left > 0; left = rest.left(time.Now()) {
			<-time.After(min(left, glance))
		}
	}
	// A dead leader still makes a group until its parent has seen it. If that is
	// stopped, and goes on, it could start the command in there. So the leader
	// leaves: then it cannot. Where the holder's group is gone, so is the holder.
	_ = syscall.Setpgid(0, g.backTo)
	_ = syscall.Kill(-g.group, syscall.SIGKILL)
}

// forwarded are the signals that the command gets.
var forwarded = []os.Signal{
	syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGQUIT, syscall.SIGUSR1, syscall.SIGUSR2,
}

// What a command knows of the lock that it runs under.
const (
	tokenVariable    = "PAWL_LOCK_TOKEN"
	deadlineVariable = "PAWL_LOCK_DEADLINE"
)

// environment is that of the command.
func environment(lease *lock.Lease) []string {
	env := slices.DeleteFunc(os.Environ(), func(v string) bool { // of a lock around this one
		name, _, _ := strings.Cut(v, "=")
		return name == tokenVariable || name == deadlineVariable
	})
	return append(env, tokenVariable+"="+strconv.FormatInt(lease.Token(), 10),
		deadlineVariable+"="+lease.Deadline().UTC().Format("2006-01-02T15:04:05.000Z"))
}
