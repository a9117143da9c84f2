package doctor

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/pawlhq/pawl/bucket"
	"github.com/pawlhq/pawl/event"
	"github.com/pawlhq/pawl/internal/process"
)

const (
	overwrites = 48 // while others read
	readers    = 4
	// breath is waited between two reads, and between two writes.
	interval = time.Millisecond
)

// edition is the content of one of several overwrites: lines with its number.
// Their lengths differ, so that a content cut to another's length is noticed.
func revision(number int) string {
	line := fmt.Sprintf("%08d\n", number)
	return strings.Repeat(line, 1000+400*(number%7))
}

// readEdition returns the newest number in a content, and whether the content is
// all of that edition and nothing else.
func parseRevision(text string) (newest int, whole bool) {
	newest = -1
	for line := range strings.Lines(text) {
		if n, err := strconv.Atoi(strings.TrimSpace(line)); err == nil && len(line) == 9 {
			newest = max(newest, n)
		}
	}
	return newest, newest >= 0 && text == revision(newest)
}

// reading is what a read during overwrites showed.
type reading struct {
	etag   string
	newest int  // edition in the content, or -1
	whole  bool // and nothing else
}

// readings counts what readers saw.
type readings struct {
	seen map[reading]int
	cut  int // reads that broke off
	err  error
}

// checkWholeReads reads an object while it is overwritten. A content that is
// newer than its ETag is harmless: whoever replaces it on condition of that
// ETag is refused.
func checkWholeReads(ctx context.Context, s *session) (string, error) {
	ref := s.ref(wholeReads)
	revisions := make(map[string]int) // by ETag
	write := func(i int) error {
		etag, err := s.expectAccepted(ctx, ref, revision(i), bucket.Condition{})
		revisions[etag] = i
		return err
	}
	if err := write(0); err != nil {
		return "", err
	}
	all := make([]readings, readers)
	reading, stop := context.WithCancel(ctx)
	var group sync.WaitGroup
	for i := range all {
		group.Go(func() { all[i] = s.readLoop(reading, ref) })
	}
	var err error
	for i := 1; i <= overwrites && err == nil && process.Sleep(ctx, interval) == nil; i++ {
		err = write(i)
	}
	stop()
	group.Wait()
	for _, r := range all {
		err = cmp.Or(err, r.err)
	}
	if err != nil {
		return "", err
	}
	return judgeReadings(all, revisions)
}

// readOn reads an object over and over, until ctx ends.
func (s *session) readLoop(ctx context.Context, ref event.Object) readings {
	r := readings{seen: make(map[reading]int)}
	for process.Sleep(ctx, interval) == nil {
		info, body, err := s.store.Get(ctx, ref)
		switch {
		case err == nil:
			r.note(info.ETag, body)
		case ctx.Err() != nil:
		case errors.Is(err, bucket.ErrNotFound):
			r.err = broken("a GET found no object while it was overwritten")
			return r
		default:
			r.err = err
			return r
		}
	}
	return r
}

func (r *readings) note(etag string, body io.ReadCloser) {
	text, err := io.ReadAll(body)
	_ = body.Close() // what was read is all of it
	if err != nil {
		r.cut++
		return
	}
	newest, whole := parseRevision(string(text))
	r.seen[reading{etag, newest, whole}]++
}

// judgeReadings compares contents with their ETags, whose editions are given.
func judgeReadings(all []readings, revisions map[string]int) (note string, err error) {
	total, ahead, cut := 0, 0, 0
	for _, r := range all {
		cut += r.cut
		for one, n := range r.seen {
			total += n
			of, known := revisions[one.etag]
			switch {
			case !known:
				return "", broken("a GET during overwrites showed the ETag %q, which no write was told", one.etag)
			case one.whole && one.newest == of:
			case one.newest > of:
				ahead += n
			case one.whole:
				return "", broken("a GET during overwrites showed an older content under a newer ETag")
			default:
				return "", broken("a GET during overwrites showed a content that is not whole, under an ETag not older than it")
			}
		}
	}
	var notes []string
	if ahead > 0 {
		notes = append(notes, fmt.Sprintf("%d of %d reads during overwrites showed a newer content than their ETag: a write on condition of that ETag is refused", ahead, total))
	}
	if cut > 0 {
		notes = append(notes, fmt.Sprintf("%d reads during overwrites broke off", cut))
	}
	return strings.Join(notes, "; "), nil
}
