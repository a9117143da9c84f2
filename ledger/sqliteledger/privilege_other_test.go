//go:build !linux

package sqliteledger

import "testing"

func dropPrivilege(*testing.T) (restore func()) { return func() {} }
