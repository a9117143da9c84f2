//go:build linux || darwin

package libwebp

import "syscall"

// newMemory reserves address space. The system allocates a page when libwebp first writes to it,
// so a picture uses only the memory that it needs.
func newMemory(limit int) (*memory, error) {
	b, err := syscall.Mmap(-1, 0, limit, syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_ANON|syscall.MAP_PRIVATE)
	return &memory{b[:0]}, err
}

// Free returns the memory to the system. Later calls do nothing.
func (m *memory) Free() {
	if m.bytes != nil {
		_ = syscall.Munmap(m.bytes[:cap(m.bytes)]) // it fails only for a slice that Mmap did not return
		m.bytes = nil
	}
}
