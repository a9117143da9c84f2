// Package deploy_test deploys Pawl to an emulation of AWS.
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

	"github.com/pawlhq/pawl/cmd/pawl/parts"
	"github.com/pawlhq/pawl/proof/servertest"
	"github.com/pawlhq/pawl/store/dynamo"
)

func init() {
	_ = os.Setenv("AWS_ACCESS_KEY_ID", "pawl")
	_ = os.Setenv("AWS_SECRET_ACCESS_KEY", "pawl")
}

// copyModule also puts a package beside each example.
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

// The test takes a minute and a half: Terraform waits for queues to become consistent.
func TestTerraformComplete(t *testing.T) {
	t.Parallel()
	aws := servertest.Moto(t)
	tf := servertest.NewTerraform(t, aws)
	dir := filepath.Join(copyModule(t), "examples", "complete")
	tf.Init(t, dir)
	tf.Run(t, dir, "validate")
	tf.Run(t, dir, "apply", "-input=false", "-auto-approve")
	tf.Run(t, dir, "plan", "-input=false", "-detailed-exitcode") // fails if there is something to change

	s := stateOf(t, tf, dir)
	checkTable(t, aws, s.Values.Outputs.LedgerURL.Value)
	checkPolicy(t, s.policy(t))

	tf.Run(t, dir, "destroy", "-input=false", "-auto-approve")
	if left := stateOf(t, tf, dir).Values.RootModule.ChildModules; len(left) > 0 {
		t.Errorf("destroy left %v", left)
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

type state struct {
	Values struct {
		Outputs struct {
			LedgerURL struct{ Value string } `json:"ledger_url"`
		}
		RootModule struct {
			ChildModules []struct {
				Resources []struct {
					Type   string
					Values struct{ Policy string }
				}
			} `json:"child_modules"`
		} `json:"root_module"`
	}
}

func stateOf(t *testing.T, tf *servertest.Terraform, dir string) (s state) {
	t.Helper()
	if err := json.Unmarshal(tf.Run(t, dir, "show", "-json"), &s); err != nil {
		t.Fatal(err)
	}
	return s
}

func (s *state) policy(t *testing.T) string {
	t.Helper()
	for _, m := range s.Values.RootModule.ChildModules {
		for _, r := range m.Resources {
			if r.Type == "aws_iam_role_policy" {
				return r.Values.Policy
			}
		}
	}
	t.Fatal("the function's role has no policy")
	return ""
}

// The driver rejects a table with other keys or another index.
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

func runPython(t *testing.T, name string, args ...string) {
	t.Helper()
	bin := servertest.AWSTools(t)
	cmd := exec.CommandContext(t.Context(), filepath.Join(bin, "python"), append([]string{filepath.Join(bin, name)}, args...)...)
	if out, err := cmd.CombinedOutput(); err != nil || len(bytes.TrimSpace(out)) > 0 {
		t.Errorf("%s %v: %v\n%s", name, args, err, out)
	}
}

func checkPolicy(t *testing.T, policy string) {
	t.Helper()
	runPython(t, "parliament", "--string", policy)
	checkWildcards(t, policy)
}

// Policies have a string or a list of strings.
type oneOrMore []string

func (o *oneOrMore) UnmarshalJSON(b []byte) error {
	var one string
	if json.Unmarshal(b, &one) == nil {
		*o = []string{one}
		return nil
	}
	return json.Unmarshal(b, (*[]string)(o))
}

type policyDocument struct {
	Statement []struct {
		Sid              string
		Action, Resource oneOrMore
	}
}

// The names of objects and log streams cannot be known.
var wildcard = regexp.MustCompile(`^arn:aws:s3:::[^*]+/[^*]*\*$|^arn:aws:logs:[^*]+:log-group:[^*]+:\*$`)

func checkWildcards(t *testing.T, policy string) {
	t.Helper()
	var p policyDocument
	if err := json.Unmarshal([]byte(policy), &p); err != nil || len(p.Statement) == 0 {
		t.Fatalf("a policy without statements: %v in %s", err, policy)
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

var described = regexp.MustCompile(`(?m)^(?:variable|output) "(\w+)" \{\n  description = "(.+)"$`)

func TestTerraformReadme(t *testing.T) {
	readme, err := os.ReadFile("terraform/README.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"variables.tf", "outputs.tf"} {
		text, err := os.ReadFile(filepath.Join("terraform", name))
		if err != nil {
			t.Fatal(err)
		}
		all := described.FindAllStringSubmatch(string(text), -1)
		if len(all) < 5 {
			t.Errorf("%s has %d descriptions", name, len(all))
		}
		for _, m := range all {
			if row := "| `" + m[1] + "` | " + strings.ReplaceAll(m[2], "$$", "$") + " |"; !bytes.Contains(readme, []byte(row)) {
				t.Errorf("README.md has no row %q", row)
			}
		}
	}
}

func TestExampleConfigurations(t *testing.T) {
	environment := map[string]string{"PAWL_LEDGER": "dynamodb://pawl?region=eu-central-1", "PAWL_EXAMPLE_ACCOUNT": "123456789012"}
	for _, example := range []string{"complete", "minimal"} {
		_, err := parts.Table.Load(filepath.Join("terraform", "examples", example, "pawl.yaml"), func(name string) (string, bool) {
			value, ok := environment[name]
			return value, ok
		})
		if err != nil {
			t.Error(err)
		}
	}
}

// The alarm depends on a text that Pawl logs.
func TestDeadObjectsAlarm(t *testing.T) {
	logged, err := os.ReadFile("../worker/observe.go")
	if err != nil {
		t.Fatal(err)
	}
	for name, pattern := range map[string]string{
		"terraform/alarms.tf": `pattern\s+= "\\"(.+)\\""`,
		"sam/template.yaml":   `FilterPattern: '"(.+)"'`,
	} {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		m := regexp.MustCompile(pattern).FindSubmatch(text)
		if m == nil || !bytes.Contains(logged, m[1]) {
			t.Errorf("the metric filter of %s matches %q, which worker/observe.go does not log", name, m)
		}
	}
}
