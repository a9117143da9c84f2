package doctor

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"sync"

	"github.com/pawlhq/pawl/bucket"
)

const (
	overwrites = 48 // while others read
	readers    = 4
)

// edition is the content of one of several overwrites: lines with its number.
// Their lengths differ, so that a content cut to another's length is noticed.
func edition(number int) string {
	line := fmt.Sprintf("%08d\n", number)
	return strings.Repeat(line, 1000+400*(number%7))
}

// readEdition returns the newest number in a content, and whether the content is
// all of that edition and nothing else. Without a number it is not ok.
func readEdition(text string) (newest int, whole, ok bool) {
	newest = -1
	for line := range strings.Lines(text) {
		if n, err := strconv.Atoi(strings.TrimSpace(line)); err == nil && len(line) == 9 {
			newest = max(newest, n)
		}
	}
	return newest, newest >= 0 && text == edition(newest), newest >= 0
}

// reading is what a read during overwrites showed.
type reading struct{ etag, text string }

// checkWholeReads reads an object while it is overwritten. A content that is
// newer than its ETag is harmless: whoever replaces it on condition of that
// ETag is refused.
func checkWholeReads(ctx context.Context, l *lab) (string, error) {
	ref := l.ref(wholeReads)
	numbers := make(map[string]int) // by ETag
	etag, err := l.accept(ctx, ref, edition(0), bucket.Condition{})
	if err != nil {
		return "", err
	}
	numbers[etag] = 0
	all := make([]readResult, readers)
	reading, stop := context.WithCancel(ctx)
	var group sync.WaitGroup
	for i := range all {
		group.Go(func() { all[i] = l.readOn(reading, ref) })
	}
	for i := 1; i <= overwrites && err == nil; i++ {
		if etag, err = l.accept(ctx, ref, edition(i), bucket.Condition{}); err == nil {
			numbers[etag] = i
		}
	}
	stop()
	group.Wait()
	if err != nil {
		return "", err
	}
	var total readResult
	for _, r := range all {
		if r.err != nil {
			return "", r.err
		}
		total.readings = append(total.readings, r.readings...)
		total.cut += r.cut
	}
	return judgeReadings(total, numbers)
}

// readResult is what one reader saw.
type readResult struct {
	readings []reading
	cut      int // reads that broke off
	err      error
}

// readOn reads an object over and over, until ctx ends.
func (l *lab) readOn(ctx context.Context, ref bucket.Ref) (r readResult) {
	for ctx.Err() == nil {
		info, body, err := l.store.Get(ctx, ref)
		switch {
		case ctx.Err() != nil && err != nil:
		case errors.Is(err, bucket.ErrNotFound):
			r.err = broken("a GET found no object while it was overwritten")
			return r
		case err != nil:
			r.err = err
			return r
		default:
			text, err := io.ReadAll(body)
			_ = body.Close() // what was read is all of it
			if err != nil {
				r.cut++
				continue
			}
			r.readings = append(r.readings, reading{info.ETag, string(text)})
		}
	}
	return r
}

// judgeReadings compares contents with their ETags, whose editions are given.
func judgeReadings(r readResult, numbers map[string]int) (note string, err error) {
	ahead := 0
	for _, one := range r.readings {
		of, known := numbers[one.etag]
		newest, whole, ok := readEdition(one.text)
		switch {
		case !known:
			return "", broken("a GET during overwrites showed the ETag %q, which no write was told", one.etag)
		case ok && whole && newest == of:
		case ok && newest > of:
			ahead++
		case ok && whole:
			return "", broken("a GET during overwrites showed an older content under a newer ETag")
		default:
			return "", broken("a GET during overwrites showed a content that is not whole, under an ETag not older than it")
		}
	}
	var notes []string
	if ahead > 0 {
		notes = append(notes, fmt.Sprintf("%d of %d reads during overwrites showed a newer content than their ETag: a write on condition of that ETag is refused", ahead, len(r.readings)))
	}
	if r.cut > 0 {
		notes = append(notes, fmt.Sprintf("%d reads during overwrites broke off", r.cut))
	}
	return strings.Join(notes, "; "), nil
}
