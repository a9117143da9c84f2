// Package worker executes the decisions of package engine. It owns the goroutines, the contexts and
// the clock.
package worker
