package engine_test

import (
	"strconv"
	"testing"

	"github.com/pawlhq/pawl/engine"
)

func TestNoncesAreUnique(t *testing.T) {
	const n = 1000
	w := newWorld(t).newWorker(engine.Config{Owner: "a", Pipelines: []string{"p"}, Policy: policy(), Swaps: 1, Batch: n}, 1)
	var in engine.Deliver
	for i := range n {
		key := parseKey(strconv.Itoa(i))
		in.Items = append(in.Items, engine.Item{Key: key})
	}
	w.step(in)
	values := map[int]map[byte]bool{}
	for _, c := range w.swaps[0].Changes {
		for i, b := range c.Row.Nonce {
			if values[i] == nil {
				values[i] = map[byte]bool{}
			}
			values[i][b] = true
		}
	}
	for i := range len(values) {
		if len(values[i]) < 200 {
			t.Errorf("byte %d of %d nonces has %d values only", i, n, len(values[i]))
		}
	}
}
