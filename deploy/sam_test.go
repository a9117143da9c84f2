package deploy_test

import (
	"encoding/json"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pawlhq/pawl/proof/servertest"
)

// cfn-lint does not look into the resources of SAM, so the test translates the template, as CloudFormation
// does. The server ignores the queue's policy, the metric filter, and alarms.
func TestSAMTemplate(t *testing.T) {
	t.Parallel()
	aws := servertest.Moto(t)
	translated := filepath.Join(t.TempDir(), "translated.json")
	cmd := exec.CommandContext(t.Context(), filepath.Join(servertest.AWSTools(t), "python"), "testdata/sam.py", "sam/template.yaml", translated)
	cmd.Env = aws.Environment(t.TempDir())
	var said strings.Builder
	cmd.Stderr = &said
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("sam.py: %v\n%s", err, said.String())
	}
	for _, template := range []string{"sam/template.yaml", translated} {
		runPython(t, "cfn-lint", template)
	}

	var stack struct {
		Status  string
		Outputs struct{ LedgerUrl string }
		Policy  string
	}
	if err := json.Unmarshal(out, &stack); err != nil {
		t.Fatalf("%v in %s", err, out)
	}
	if stack.Status != "CREATE_COMPLETE" {
		t.Errorf("the stack is %s", stack.Status)
	}
	checkTable(t, aws, stack.Outputs.LedgerUrl)
	checkPolicy(t, stack.Policy)
}
