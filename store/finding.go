package store

// Finding is one result of a driver's check of its database.
type Finding struct {
	Name    string `json:"name"`
	Value   string `json:"value,omitempty"`
	Problem string `json:"problem,omitempty"` // the problem and its remedy; empty: no problem
}
