//go:build race

package lock

// played is how many worlds are played under the race detector, which would take
// ten times as long, and a megabyte of memory for each: they have one thread.
const played = 200
