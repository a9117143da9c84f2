package audit

import (
	"testing"

	"github.com/pawlhq/pawl/internal/format/formattest"
)

func TestFormatsOfReleases(t *testing.T) {
	formattest.CheckRegister[checkpoint](t, "audit-progress")
	formattest.CheckRegister[reports](t, "audit-reports")
	formattest.CheckRegister[watermark](t, "audit-watermark")
}
