package sqlite

import (
	"os"
	"runtime"
	"syscall"
	"testing"
)

func dropPrivilege(t *testing.T) (restore func()) {
	t.Helper()
	if os.Geteuid() != 0 {
		return func() {}
	}
	const nobody = 65534
	runtime.LockOSThread()
	if err := syscall.Setfsuid(nobody); err != nil {
		t.Fatal(err)
	}
	return func() {
		if err := syscall.Setfsuid(0); err != nil {
			t.Fatal(err) // the thread remains locked, and ends with the test
		}
		runtime.UnlockOSThread()
	}
}
