package toolcache

import (
	"fmt"
	"os/exec"
	"path/filepath"
)

// providerMirrors are the folders in which a machine may keep Terraform's provider for
// AWS, so that no network is needed. The second is one that Terraform itself knows.
var providerMirrors = []string{"/opt/*/registry.terraform.io/hashicorp/aws", "/usr/local/share/terraform/plugins/registry.terraform.io/hashicorp/aws"}

// FindTerraform returns the path of Terraform, and the folder that its option -plugin-dir
// names. The folder is "" if Terraform must fetch the provider.
func FindTerraform() (program, plugins string, err error) {
	program, err = exec.LookPath("terraform")
	if err != nil {
		return "", "", fmt.Errorf("%w: %w", ErrNoTerraform, err)
	}
	for _, pattern := range providerMirrors {
		if found, _ := filepath.Glob(pattern); len(found) > 0 { // the pattern is right
			return program, filepath.Join(found[0], "..", "..", ".."), nil
		}
	}
	return program, "", nil
}
