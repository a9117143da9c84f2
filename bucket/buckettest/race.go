package buckettest

import (
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"

	"github.com/pawlhq/pawl/bucket"
)

var raceTests = map[string]func(*testing.T, Harness){
	"race/if-absent": testRaceIfAbsent,
	"race/if-match":  testRaceIfMatch,
	"race/delete":    testRaceDelete,
}

const (
	racers = 16
	rounds = 8
)

func race(t *testing.T, run func(racer int) error) []int {
	t.Helper()
	var wg sync.WaitGroup
	start := make(chan struct{})
	errs := make([]error, racers)
	for i := range racers {
		wg.Go(func() {
			<-start
			errs[i] = run(i)
		})
	}
	close(start)
	wg.Wait()
	var winners []int
	for i, err := range errs {
		switch {
		case err == nil:
			winners = append(winners, i)
		case !errors.Is(err, bucket.ErrPrecondition) && !errors.Is(err, bucket.ErrConflict):
			t.Errorf("racer %d: %v, want ErrPrecondition or ErrConflict", i, err)
		}
	}
	if len(winners) == 0 {
		t.Fatalf("no writer succeeded: %v", errs)
	}
	return winners
}

func (h Harness) racePut(t *testing.T, key string, c bucket.Condition) {
	t.Helper()
	text := func(i int) string { return fmt.Sprintf("by %d", i) }
	winners := race(t, func(i int) error {
		_, err := h.Store.Put(t.Context(), h.ref(key), object(text(i)), c)
		return err
	})
	if len(winners) > 1 {
		t.Errorf("winners: %v, want one", winners)
	}
	h.wantContent(t, key, text(winners[0]))
}

func testRaceIfAbsent(t *testing.T, h Harness) {
	for i := range rounds {
		h.racePut(t, fmt.Sprint("k", i), bucket.Condition{IfAbsent: true})
	}
}

func testRaceIfMatch(t *testing.T, h Harness) {
	for i := range rounds {
		h.racePut(t, "k", bucket.Condition{IfMatch: h.put(t, "k", fmt.Sprint("round ", i))})
	}
}

// Several deletes may succeed, but not both a write and a delete.
func testRaceDelete(t *testing.T, h Harness) {
	if !h.DeleteAtomic {
		return
	}
	for i := range rounds {
		c := bucket.Condition{IfMatch: h.put(t, "k", fmt.Sprint("round ", i))}
		winners := race(t, func(racer int) error {
			if racer%2 == 0 {
				return h.Store.Delete(t.Context(), h.ref("k"), c)
			}
			_, err := h.Store.Put(t.Context(), h.ref("k"), object(fmt.Sprint("by ", racer)), c)
			return err
		})
		writer := slices.IndexFunc(winners, func(racer int) bool { return racer%2 == 1 })
		switch {
		case writer < 0:
			h.wantAbsent(t, "k")
		case len(winners) > 1:
			t.Errorf("winners: %v, want one writer or any removers", winners)
		default:
			h.wantContent(t, "k", fmt.Sprint("by ", winners[writer]))
		}
	}
}
