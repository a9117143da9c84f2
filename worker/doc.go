// Package worker executes the decisions of package engine: it swaps rows, runs handlers
// under leases, and answers deliveries. It owns the goroutines, the contexts and the
// clock.
package worker
