package alerts

import (
	"testing"

	"github.com/pawlhq/pawl/internal/format/formattest"
)

func TestFormatsOfReleases(t *testing.T) {
	formattest.CheckRegister[stored](t, "alerts-state")
	formattest.CheckRegister[mark](t, "alerts-mark")
}
