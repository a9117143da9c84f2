//go:build formatnext

package ledger

// This build stands for the next minor version in tests of upgrades.
const (
	RowFormat = "1.1"
	newMember = `"next":1`
)
