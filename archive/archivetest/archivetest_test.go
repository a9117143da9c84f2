package archivetest_test

import (
	"testing"
	"time"

	"github.com/pawlhq/pawl/archive/archivetest"
)

func TestFake(t *testing.T) {
	for name, f := range map[string]func(*archivetest.Fake){
		"as it is":       func(*archivetest.Fake) {},
		"slow":           func(f *archivetest.Fake) { f.Delay = time.Millisecond },
		"in small pages": func(f *archivetest.Fake) { f.PageSize = 1 },
	} {
		t.Run(name, func(t *testing.T) {
			archivetest.Run(t, func(_ *testing.T, shards int) archivetest.Producer {
				fake := archivetest.NewFake(shards)
				f(fake)
				return fake
			})
		})
	}
}
