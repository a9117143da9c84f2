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
	overwrites = 48
	readers    = 4
	// interval is the delay between two reads, and between two writes.
	interval = time.Millisecond
)

// Consecutive revisions differ in length, so that the check detects a wrong length.
func revision(number int) string {
	line := fmt.Sprintf("%08d\n", number)
	return strings.Repeat(line, 1000+400*(number%7))
}

// parseRevision returns the highest number in text, and whether text is exactly that revision.
func parseRevision(text string) (newest int, whole bool) {
	newest = -1
	for line := range strings.Lines(text) {
		if n, err := strconv.Atoi(strings.TrimSpace(line)); err == nil && len(line) == 9 {
			newest = max(newest, n)
		}
	}
	return newest, newest >= 0 && text == revision(newest)
}

type reading struct {
	etag   string
	newest int  // in the content, or -1
	whole  bool // exactly that revision
}

type readings struct {
	seen map[reading]int
	cut  int
	err  error
}

// Content that is newer than its ETag is harmless, because the store rejects a later write with
// that ETag.
func checkWholeReads(ctx context.Context, s *session) (string, error) {
	ref := s.ref(wholeReads)
	revisions := make(map[string]int)
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
	_ = body.Close()
	if err != nil {
		r.cut++
		return
	}
	newest, whole := parseRevision(string(text))
	r.seen[reading{etag, newest, whole}]++
}

func judgeReadings(all []readings, revisions map[string]int) (note string, err error) {
	total, ahead, cut := 0, 0, 0
	for _, r := range all {
		cut += r.cut
		for one, n := range r.seen {
			total += n
			of, known := revisions[one.etag]
			switch {
			case !known:
				return "", broken("a GET during overwrites returned the ETag %q, which no write returned", one.etag)
			case one.whole && one.newest == of:
			case one.newest > of:
				ahead += n
			case one.whole:
				return "", broken("a GET during overwrites returned older content with a newer ETag")
			default:
				return "", broken("a GET during overwrites returned incomplete content that is not newer than its ETag")
			}
		}
	}
	var notes []string
	if ahead > 0 {
		notes = append(notes, fmt.Sprintf("%d of %d reads during overwrites returned content that is newer than its ETag: a write with If-Match and that ETag is rejected", ahead, total))
	}
	if cut > 0 {
		notes = append(notes, fmt.Sprintf("%d reads during overwrites broke off", cut))
	}
	return strings.Join(notes, "; "), nil
}
