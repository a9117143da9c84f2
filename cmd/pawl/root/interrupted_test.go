package root

import (
	"bytes"
	"context"
	"strings"
	"testing"

	"github.com/pawlhq/pawl/cmd/pawl/app"
)

func TestSimulationInterrupted(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	var out, errs bytes.Buffer
	code := Main(ctx, []string{"simulate", "--seed", "7"}, app.Streams{Out: &out, Err: &errs})
	if code != app.ExitFailed || !strings.HasPrefix(out.String(), "seeds 7 to 7: 0 worlds, 0 steps each") ||
		!strings.HasPrefix(errs.String(), "pawl: the simulation was interrupted after 0 of 50000 worlds\nhint: continue with --seed 7\n") {
		t.Errorf("exit code %d\n%s\n%s", code, &out, &errs)
	}
}
