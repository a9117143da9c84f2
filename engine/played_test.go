//go:build !race

package engine_test

// played is the number of histories that TestHistories plays by default.
const played = 3000
