package store

// Finding is one result of a driver's examination of its database.
type Finding struct {
	Name    string `json:"name"`
	Value   string `json:"value,omitempty"`
	Problem string `json:"problem,omitempty"` // what is wrong, and what to do; empty: nothing
}
