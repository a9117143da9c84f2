package awslambda

import (
	"testing"

	"github.com/pawlhq/pawl/internal/format/formattest"
)

func TestFormatsOfReleases(t *testing.T) { formattest.CheckRegister[sweep](t, "lambda-sweep") }
