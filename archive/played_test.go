//go:build !race

package archive

const played = 2000
