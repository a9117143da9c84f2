package worker

// Order says what decides about an object.
type Order uint8

// The orders; package pawl documents them for users.
const (
	StoreOrder Order = iota
	EventOrder
)
