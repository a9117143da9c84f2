// Package worker performs what package engine decides: it swaps rows, runs
// handlers under leases, answers deliveries, and feeds the results back. It
// owns the goroutines, the contexts and the clock.
package worker
