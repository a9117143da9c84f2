package toolcache

import (
	"fmt"
	"os/exec"
	"path/filepath"
)

// providerMirrors are folders that may contain Terraform's AWS provider, so that tests need no
// network. Terraform searches the second folder itself.
var providerMirrors = []string{"/opt/*/registry.terraform.io/hashicorp/aws", "/usr/local/share/terraform/plugins/registry.terraform.io/hashicorp/aws"}

// FindTerraform returns the path of Terraform, and the folder for its option -plugin-dir. The
// folder is "" if Terraform must download the provider.
func FindTerraform() (program, plugins string, err error) {
	program, err = exec.LookPath("terraform")
	if err != nil {
		return "", "", fmt.Errorf("%w: %w", ErrNoTerraform, err)
	}
	for _, pattern := range providerMirrors {
		if found, _ := filepath.Glob(pattern); len(found) > 0 { // the error is impossible because the pattern is valid
			return program, filepath.Join(found[0], "..", "..", ".."), nil
		}
	}
	return program, "", nil
}
