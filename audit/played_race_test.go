//go:build race

package audit_test

// played is how many worlds are played at least under the race detector, which takes
// a hundred times as long. They are played again without it.
const played = 6
