//go:build !race

package audit_test

// played is how many worlds are played at least.
const played = 60
