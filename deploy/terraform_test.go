// Package deploy_test deploys Pawl to a server that imitates AWS, and checks what is
// deployed.
package deploy_test

import (
	"archive/zip"
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/pawlhq/pawl/internal/servertest"
	"github.com/pawlhq/pawl/store/dynamo"
)

// copyModule copies the Terraform module, with a package beside each example, and
// returns its folder.
func copyModule(t *testing.T) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "terraform")
	if err := os.CopyFS(dir, os.DirFS("terraform")); err != nil {
		t.Fatal(err)
	}
	var pack bytes.Buffer
	z := zip.NewWriter(&pack)
	_, err := z.Create("bootstrap")
	if err == nil {
		err = z.Close()
	}
	for _, example := range []string{"complete", "minimal"} {
		if err == nil {
			err = os.WriteFile(filepath.Join(dir, "examples", example, "pawl.zip"), pack.Bytes(), 0o600)
		}
	}
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

func TestTerraformFormat(t *testing.T) {
	tf := servertest.NewTerraform(t, &servertest.AWS{})
	tf.Run(t, "terraform", "fmt", "-check", "-recursive", "-diff")
}

// TestTerraformComplete deploys the complete example and removes it. It takes a minute
// and a half, in which Terraform mostly waits for queues to become consistent.
func TestTerraformComplete(t *testing.T) {
	t.Parallel()
	aws := servertest.Moto(t)
	tf := servertest.NewTerraform(t, aws)
	dir := filepath.Join(copyModule(t), "examples", "complete")
	tf.Init(t, dir)
	tf.Run(t, dir, "validate")
	tf.Run(t, dir, "apply", "-input=false", "-auto-approve")
	tf.Run(t, dir, "plan", "-input=false", "-detailed-exitcode") // fails if there is something to change

	var s state
	if err := json.Unmarshal(tf.Run(t, dir, "show", "-json"), &s); err != nil {
		t.Fatal(err)
	}
	checkTable(t, aws, s.Values.Outputs.LedgerURL.Value)
	checkPolicies(t, s.policies())

	tf.Run(t, dir, "destroy", "-input=false", "-auto-approve")
	if left := tf.Run(t, dir, "state", "list"); len(left) > 0 {
		t.Errorf("destroy left:\n%s", left)
	}
}

func TestTerraformMinimal(t *testing.T) {
	t.Parallel()
	tf := servertest.NewTerraform(t, servertest.Moto(t))
	dir := filepath.Join(copyModule(t), "examples", "minimal")
	tf.Init(t, dir)
	tf.Run(t, dir, "validate")
	tf.Run(t, dir, "plan", "-input=false")
}

// state is Terraform's state, as far as it is checked.
type state struct {
	Values struct {
		Outputs struct {
			LedgerURL struct{ Value string } `json:"ledger_url"`
		}
		RootModule struct {
			ChildModules []struct {
				Resources []struct {
					Address, Type string
					Values        struct{ Policy string }
				}
			} `json:"child_modules"`
		} `json:"root_module"`
	}
}

// policies returns the policies of the function's role.
func (s *state) policies() (all []string) {
	for _, m := range s.Values.RootModule.ChildModules {
		for _, r := range m.Resources {
			if r.Type == "aws_iam_role_policy" {
				all = append(all, r.Values.Policy)
			}
		}
	}
	return all
}

// checkTable opens the table with the driver, which refuses one with other keys or
// another index.
func checkTable(t *testing.T, aws *servertest.AWS, url string) {
	t.Helper()
	s, err := dynamo.Open(t.Context(), url+"&endpoint="+aws.Endpoint)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
}

// checkPolicies runs parliament over the policies, and looks for wildcards.
func checkPolicies(t *testing.T, policies []string) {
	t.Helper()
	if len(policies) == 0 {
		t.Error("the function's role has no policy")
	}
	bin := servertest.AWSTools(t)
	for _, policy := range policies {
		cmd := exec.CommandContext(t.Context(), filepath.Join(bin, "python"), filepath.Join(bin, "parliament"), "--string", policy)
		if out, err := cmd.CombinedOutput(); err != nil || len(out) > 0 {
			t.Errorf("parliament: %v\n%s\nin %s", err, out, policy)
		}
		checkWildcards(t, policy)
	}
}

// oneOrMore is a string or a list of strings, as policies have them.
type oneOrMore []string

func (o *oneOrMore) UnmarshalJSON(b []byte) error {
	var one string
	if json.Unmarshal(b, &one) == nil {
		*o = []string{one}
		return nil
	}
	return json.Unmarshal(b, (*[]string)(o))
}

// policyDocument is an IAM policy.
type policyDocument struct {
	Statement []struct {
		Sid              string
		Action, Resource oneOrMore
	}
}

// wildcard matches the resources whose names cannot be known: objects and log streams.
var wildcard = regexp.MustCompile(`^arn:aws:s3:::[^*]+/[^*]*\*$|^arn:aws:logs:[^*]+:log-group:[^*]+:\*$`)

func checkWildcards(t *testing.T, policy string) {
	t.Helper()
	var p policyDocument
	if err := json.Unmarshal([]byte(policy), &p); err != nil {
		t.Fatal(err)
	}
	for _, s := range p.Statement {
		if slices.ContainsFunc(s.Action, func(a string) bool { return strings.Contains(a, "*") }) {
			t.Errorf("statement %s has a wildcard in an action: %v", s.Sid, s.Action)
		}
		for _, r := range s.Resource {
			if strings.Contains(r, "*") && !wildcard.MatchString(r) {
				t.Errorf("statement %s has a wildcard in the resource %s", s.Sid, r)
			}
		}
	}
}

// TestDeadObjectsAlarm checks that the alarm about dead objects looks for a text that
// Pawl logs.
func TestDeadObjectsAlarm(t *testing.T) {
	alarms, err := os.ReadFile("terraform/alarms.tf")
	if err != nil {
		t.Fatal(err)
	}
	logged, err := os.ReadFile("../worker/observe.go")
	if err != nil {
		t.Fatal(err)
	}
	m := regexp.MustCompile(`pattern\s+= "\\"(.+)\\""`).FindSubmatch(alarms)
	if m == nil || !bytes.Contains(logged, m[1]) {
		t.Errorf("the metric filter looks for %q, which worker/observe.go does not log", m)
	}
}
