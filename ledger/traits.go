package ledger

import "github.com/pawlhq/pawl/store"

// Traits are the properties and limits of a ledger; see [store.Traits].
type Traits = store.Traits

// DefaultBatch is the default limit of changes in one Swap.
const DefaultBatch = 1000

// Declarer is implemented by stores whose traits are not all zero.
type Declarer interface {
	Traits() Traits
}

// TraitsOf returns the traits of a store, with defaults for zero limits.
func TraitsOf(s Store) Traits {
	var t Traits
	if d, ok := s.(Declarer); ok {
		t = d.Traits()
	}
	if t.Batch == 0 {
		t.Batch = DefaultBatch
	}
	if t.Swaps == 0 {
		t.Swaps = 2
	}
	return t
}
