package deploy_test

import (
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/pawlhq/pawl/proof/servertest"
)

func TestDockerfile(t *testing.T) {
	t.Parallel()
	if out, err := exec.CommandContext(t.Context(), filepath.Join(servertest.AWSTools(t), "hadolint"), "Dockerfile").CombinedOutput(); err != nil {
		t.Errorf("hadolint: %v\n%s", err, out)
	}
}
