//go:build unix && !linux

package e2e

import "testing"

func TestMain(m *testing.M) {
	defer func() { removeBuilt() }()
	m.Run()
}
