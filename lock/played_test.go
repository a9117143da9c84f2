//go:build !race

package lock

// played is how many worlds are played.
const played = 20_000
