//go:build !linux

package sqlite

import "testing"

func dropPrivilege(*testing.T) (restore func()) { return func() {} }
