//go:build race

package archive

// played is few: a world has one thread at a time, and none that races.
const played = 20
