package bucket

import "time"

// Request describes one request to an object store, for metrics.
type Request struct {
	Operation string // in the store's API, for example PutObject
	Status    int    // of the response; 0 if there was none
	// Skew is how far the store's clock is certainly ahead of this machine's, or behind if negative.
	// It is valid if Dated is true.
	Skew  time.Duration
	Dated bool
}

// Reporter is a [Store] that reports its requests.
type Reporter interface {
	// OnRequest sets the function that is called after each request, concurrently. Call it while no
	// request runs.
	OnRequest(report func(Request))
}
