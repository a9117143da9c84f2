package doctor

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"sync"

	"github.com/pawlhq/pawl/bucket"
	"github.com/pawlhq/pawl/cell"
	"github.com/pawlhq/pawl/event"
)

const (
	racers = 32
	rounds = 8
	// Each copy also writes its source.
	copyRacers = 8
)

// runRaces sends concurrent writes with the same condition in each round that next prepares.
func (s *session) runRaces(ctx context.Context, next func(round string) (event.Object, bucket.Condition, error)) (string, error) {
	decided := 0
	for round := range rounds {
		ref, c, err := next(strconv.Itoa(round))
		if err == nil && c == (bucket.Condition{}) {
			err = bucket.ErrNoETag
		}
		if err != nil {
			return "", err
		}
		answers, texts, err := s.runRace(ctx, ref, c)
		if err != nil {
			return "", err
		}
		now, err := s.read(ctx, ref)
		if err != nil {
			return "", err
		}
		ok, err := judgeRace(answers, slices.Index(texts, now.text))
		switch {
		case err != nil:
			return "", fmt.Errorf("round %d, %s: %w", round+1, header(c), err)
		case ok:
			decided++
		case !pause(ctx, 1):
			return "", ctx.Err()
		}
	}
	switch decided {
	case 0:
		return "", fmt.Errorf("%w: none of %d concurrent writers succeeded in any of %d rounds", bucket.ErrConflict, racers, rounds)
	case rounds:
		return "", nil
	}
	return fmt.Sprintf("%[2]d of %[1]d rounds of concurrent writers had no winner: every writer got a conflict", rounds, rounds-decided), nil
}

func (s *session) runRace(ctx context.Context, ref event.Object, c bucket.Condition) ([]cell.Outcome, []string, error) {
	n := racers
	if s.method != 0 {
		n = copyRacers
	}
	answers, texts, errs := make([]cell.Outcome, n), make([]string, n), make([]error, n)
	start := make(chan struct{})
	var group sync.WaitGroup
	for i := range n {
		texts[i] = content()
		group.Go(func() {
			<-start
			_, err := s.put(ctx, ref, object(texts[i]), c)
			switch {
			case err == nil:
				answers[i] = cell.Landed
			case errors.Is(err, bucket.ErrPrecondition):
				answers[i] = cell.Lost
			case errors.Is(err, bucket.ErrConflict), errors.Is(err, bucket.ErrUnclear):
				answers[i] = cell.Unclear // a conflict or a lost response
				s.noteUnanswered(errors.Is(err, bucket.ErrUnclear))
			default:
				errs[i] = err
			}
		})
	}
	close(start)
	group.Wait()
	if i := slices.IndexFunc(errs, func(err error) bool { return err != nil }); i >= 0 {
		return nil, nil, errs[i]
	}
	return answers, texts, nil
}

// now is the index of the writer whose content the object has, or -1. A round without such a
// writer is undecided.
func judgeRace(answers []cell.Outcome, now int) (decided bool, err error) {
	winner, wins := -1, 0
	for i, a := range answers {
		if a == cell.Landed {
			winner, wins = i, wins+1
		}
	}
	switch {
	case wins > 1:
		return false, ignored("%d of %d concurrent writers were accepted", wins, len(answers))
	case wins == 0:
		// Even a rejected writer may have won: if a proxy sent its request twice, the store
		// rejects the second copy.
		return now >= 0, nil
	case now == winner:
		return true, nil
	case now >= 0 && answers[now] == cell.Unclear:
		return false, ignored("one writer was accepted, but the object has the content of another, whose response was unclear")
	case now >= 0:
		return false, broken("one writer was accepted, but the object has the content of another, which was rejected")
	}
	return false, broken("one writer was accepted, but the object does not have its content")
}
