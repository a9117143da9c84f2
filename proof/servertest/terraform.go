package servertest

import (
	"os/exec"
	"testing"

	"github.com/pawlhq/pawl/internal/toolcache"
)

// Terraform is an installed Terraform whose AWS provider uses a test server.
type Terraform struct {
	program, plugins string
	env              []string
}

// NewTerraform finds the installed Terraform.
func NewTerraform(t testing.TB, a *AWS) *Terraform {
	t.Helper()
	Long(t)
	program, plugins, err := toolcache.FindTerraform()
	require(t, err)
	return &Terraform{program: program, plugins: plugins, env: append(a.Environment(t.TempDir()), "CHECKPOINT_DISABLE=1", "TF_IN_AUTOMATION=1")}
}

// Init prepares the folder dir.
func (tf *Terraform) Init(t testing.TB, dir string) {
	t.Helper()
	args := []string{"init", "-backend=false", "-input=false"}
	if tf.plugins != "" {
		args = append(args, "-plugin-dir="+tf.plugins)
	}
	tf.Run(t, dir, args...)
}

// Run runs a Terraform command in the folder dir and returns its output.
func (tf *Terraform) Run(t testing.TB, dir string, args ...string) []byte {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), tf.program, append([]string{"-chdir=" + dir, args[0], "-no-color"}, args[1:]...)...)
	cmd.Env = tf.env
	DieWithParent(cmd)
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("terraform %v in %s: %v\n%s", args, dir, err, out)
	}
	return out
}
