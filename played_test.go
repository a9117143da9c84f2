//go:build !race

package pawl_test

import "time"

const (
	auditedWrites  = 1200      // of TestAuditBesideTraffic
	auditedPause   = time.Hour // at its end
	rowsAmongNewer = 10_000    // of TestRowsOfNewerPawlVersion
)
