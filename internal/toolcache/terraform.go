package toolcache

import (
	"fmt"
	"os/exec"
	"path/filepath"
)

// providerMirrors may contain Terraform's AWS provider, so that tests need no network. Terraform searches
// the second folder itself.
var providerMirrors = []string{"/opt/*/registry.terraform.io/hashicorp/aws", "/usr/local/share/terraform/plugins/registry.terraform.io/hashicorp/aws"}

// FindTerraform returns Terraform's path, and its option -plugin-dir, or "" if Terraform must download the
// provider.
func FindTerraform() (program, plugins string, err error) {
	program, err = exec.LookPath("terraform")
	if err != nil {
		return "", "", fmt.Errorf("%w: %w", ErrNoTerraform, err)
	}
	for _, pattern := range providerMirrors {
		if found, _ := filepath.Glob(pattern); len(found) > 0 { // the pattern is valid
			return program, filepath.Join(found[0], "..", "..", ".."), nil
		}
	}
	return program, "", nil
}
