// Package rowjson encodes the rows of a batch, on more cores than one. Package
// ledger is pure, and starts no goroutines.
package rowjson

import (
	"runtime"

	"golang.org/x/sync/errgroup"

	"github.com/pawlhq/pawl/ledger"
)

// share is how many rows make it worth to encode on one more core.
const share = 64

// Encode returns the JSON of each change's row, "" for a deletion.
func Encode(changes []ledger.Change) ([]string, error) {
	bodies := make([]string, len(changes))
	var g errgroup.Group
	size := max(share, (len(changes)+runtime.GOMAXPROCS(0)-1)/runtime.GOMAXPROCS(0))
	for from := 0; from < len(changes); from += size {
		to := min(from+size, len(changes))
		g.Go(func() error { return encodeInto(bodies[from:to], changes[from:to]) })
	}
	return bodies, g.Wait()
}

func encodeInto(bodies []string, changes []ledger.Change) error {
	for i := range changes {
		if changes[i].Row == nil {
			continue
		}
		b, err := ledger.Encode(changes[i].Row)
		if err != nil {
			return err
		}
		bodies[i] = string(b)
	}
	return nil
}
