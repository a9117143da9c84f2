//go:build !formatnext

package ledger

// RowFormat is the version of the rows that this build writes.
const RowFormat = "1.0"

// newMember is a member that RowFormat adds.
const newMember = ""
