package ledger

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"strings"
)

// Registers is a further ability of a [Store]: named values beside the rows, each
// changed alone by compare-and-swap. They hold what workers of one ledger share
// and no row can: leases, cursors and reports of audits and archives.
//
// A backend has the ability when it passes ledgertest.Registers.
type Registers interface {
	// ReadRegister returns a register, without a Version if it does not exist.
	ReadRegister(ctx context.Context, name string) (Register, error)
	// WriteRegister writes value if the register still carries version; the empty
	// version demands that it does not exist. It returns the new version, which
	// no register has carried before.
	//
	// ErrRegisterChanged says that the condition did not hold, and that this
	// request writes nothing; ErrRegister that it was refused for good. After any
	// other error, ErrUnusable too, the value may have been written, or may yet be.
	WriteRegister(ctx context.Context, name, version string, value []byte) (next string, err error)
	// RemoveRegister removes a register if it still carries version. Its errors are
	// those of WriteRegister.
	RemoveRegister(ctx context.Context, name, version string) error
	// ListRegisters yields the registers whose names begin with prefix, in the
	// order of their names, byte by byte. It sees concurrent writes or not. An
	// error ends it.
	ListRegisters(ctx context.Context, prefix string) iter.Seq2[Register, error]
}

// Register is a named value.
type Register struct {
	Name    string
	Version string // changes with every write; empty: the register does not exist
	Value   []byte // the caller's own copy
}

// What a register may be.
const (
	MaxRegister     = 64 << 10 // bytes of a value
	MaxRegisterName = 256      // bytes of a name
)

var (
	// ErrRegisterChanged: the register does not carry the expected version.
	ErrRegisterChanged = errors.New("the register has changed")
	// ErrRegister: the name or the value cannot be a register's.
	ErrRegister = errors.New("no such register can be")
)

// CheckRegister returns an error that matches ErrRegister for what every backend
// refuses: a name that is not 1 to MaxRegisterName bytes of printable ASCII
// without spaces, or a value of more than MaxRegister bytes.
func CheckRegister(name string, value []byte) error {
	if name == "" || len(name) > MaxRegisterName {
		return fmt.Errorf("%w: its name has %d bytes: 1 to %d are allowed", ErrRegister, len(name), MaxRegisterName)
	}
	for i := range len(name) {
		if name[i] <= ' ' || name[i] > '~' {
			return fmt.Errorf("%w: the name %q has other characters than printable ASCII without spaces", ErrRegister, name)
		}
	}
	if len(value) > MaxRegister {
		return fmt.Errorf("%w: the value of %s has %d bytes: at most %d are allowed", ErrRegister, name, len(value), MaxRegister)
	}
	return nil
}

// RegisterPage is the number of registers that a backend reads at once: 1 MB at most.
const RegisterPage = 16

// PageRegisters yields the registers whose names begin with prefix. page returns up to
// RegisterPage of them in the order of their names, from a name on.
func PageRegisters(prefix string, page func(from string) ([]Register, error)) iter.Seq2[Register, error] {
	return func(yield func(Register, error) bool) {
		for from := prefix; ; {
			found, err := page(from)
			if err != nil {
				yield(Register{}, err)
				return
			}
			for _, r := range found {
				if !strings.HasPrefix(r.Name, prefix) || !yield(r, nil) {
					return
				}
			}
			if len(found) < RegisterPage {
				return
			}
			from = found[len(found)-1].Name + "\x01" // no name has so low a byte
		}
	}
}
