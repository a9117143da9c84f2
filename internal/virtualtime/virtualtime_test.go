package virtualtime_test

import (
	"sync"
	"testing"
	"time"

	"github.com/pawlhq/pawl/internal/virtualtime"
)

// With synctest.Test and two threads, this test crashed the race detector in 8 of 8 runs.
func TestTimersOfTheSameMoment(t *testing.T) {
	for range 30 {
		virtualtime.Test(t, func(*testing.T) {
			var group sync.WaitGroup
			for range 32 {
				group.Go(func() {
					for range 100 {
						time.Sleep(time.Millisecond)
						first, second := time.NewTimer(time.Millisecond), time.NewTimer(time.Millisecond)
						<-first.C
						<-second.C
					}
				})
			}
			group.Wait()
		})
	}
}
