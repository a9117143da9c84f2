package app

import (
	"github.com/pawlhq/pawl/archive"
	"github.com/pawlhq/pawl/files"
	"github.com/pawlhq/pawl/internal/format"
	"github.com/pawlhq/pawl/ledger"
	"github.com/pawlhq/pawl/lock"
)

// Formats has the version of each stored format that this build writes. It reads every version with the
// same number before the dot.
var Formats = map[string]string{
	"rows":      ledger.RowFormat,
	"registers": format.Register,
	"files":     files.Format,
	"locks":     lock.Format,
	"archives":  archive.ClaimFormat,
}
