package ledger

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"iter"
	"strings"

	"github.com/pawlhq/pawl/store"
)

// Registers are named values beside the rows, each changed alone by compare-and-swap.
// They hold what the workers of one ledger share and no row can: leases, cursors and
// reports of audits and archives. [Rows] has them.
type Registers interface {
	// ReadRegister returns a register, without a Version if it does not exist.
	ReadRegister(ctx context.Context, name string) (Register, error)
	// WriteRegister writes value if the register still carries version; the empty
	// version demands that it does not exist. It returns the new version, which
	// no register has carried before. Invalid UTF-8 in the value is replaced.
	//
	// ErrRegisterChanged says that the condition did not hold, and that this
	// request writes nothing; ErrInvalidRegister that it was refused for good. After any
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
	// ErrInvalidRegister: the name or the value cannot be a register's.
	ErrInvalidRegister = errors.New("invalid register")
)

// CheckRegister returns an error that matches ErrInvalidRegister for what no ledger accepts: a
// name that is not 1 to MaxRegisterName bytes of printable ASCII without spaces, or a
// value of more than MaxRegister bytes.
func CheckRegister(name string, value []byte) error {
	if name == "" || len(name) > MaxRegisterName {
		return fmt.Errorf("%w: the name has %d bytes, want 1 to %d", ErrInvalidRegister, len(name), MaxRegisterName)
	}
	for i := range len(name) {
		if name[i] <= ' ' || name[i] > '~' {
			return fmt.Errorf("%w: the name %q is not printable ASCII without spaces", ErrInvalidRegister, name)
		}
	}
	if len(value) > MaxRegister {
		return fmt.Errorf("%w: the value of %s has %d bytes, want at most %d", ErrInvalidRegister, name, len(value), MaxRegister)
	}
	return nil
}

const registerSpace = "register"

func registerOf(r *store.Record) Register {
	return Register{Name: r.Name, Version: hex.EncodeToString(r.Nonce[:]), Value: []byte(r.Body)}
}

// ReadRegister implements [Registers].
func (s *Rows) ReadRegister(ctx context.Context, name string) (Register, error) {
	if err := CheckRegister(name, nil); err != nil {
		return Register{}, err
	}
	found, err := s.records.Load(ctx, []store.Key{{Space: registerSpace, Name: name}})
	if err != nil || len(found) == 0 {
		return Register{Name: name}, err
	}
	return registerOf(&found[0]), nil
}

// WriteRegister implements [Registers].
func (s *Rows) WriteRegister(ctx context.Context, name, version string, value []byte) (next string, err error) {
	text := strings.ReplaceAll(strings.ToValidUTF8(string(value), "\uFFFD"), "\x00", "\uFFFD")
	if err := CheckRegister(name, []byte(text)); err != nil {
		return "", err
	}
	key := store.Key{Space: registerSpace, Name: name}
	record := &store.Record{Key: key, Nonce: store.NewNonce(), Body: text}
	if err := s.changeRegister(ctx, &store.Change{Key: key, Next: record}, version); err != nil {
		return "", err
	}
	return hex.EncodeToString(record.Nonce[:]), nil
}

// RemoveRegister implements [Registers].
func (s *Rows) RemoveRegister(ctx context.Context, name, version string) error {
	if err := CheckRegister(name, nil); err != nil {
		return err
	}
	if version == "" {
		return ErrRegisterChanged
	}
	return s.changeRegister(ctx, &store.Change{Key: store.Key{Space: registerSpace, Name: name}}, version)
}

// changeRegister makes a change of a register that has a version.
func (s *Rows) changeRegister(ctx context.Context, c *store.Change, version string) error {
	if version != "" {
		b, err := hex.DecodeString(version)
		if err != nil || len(b) != len(c.Expect) {
			return ErrRegisterChanged // no register has carried it
		}
		c.Expect = store.Nonce(b)
	}
	out, err := s.records.Swap(ctx, []store.Change{*c})
	switch {
	case err != nil:
		return err
	case out[0].Err != nil:
		return out[0].Err
	case out[0].Current != nil && out[0].Current.Nonce == c.Expect:
		return fmt.Errorf("the register %s changed twice: %w", c.Key.Name, store.ErrThrottled)
	case !out[0].Applied:
		return ErrRegisterChanged
	}
	return nil
}

// ListRegisters implements [Registers].
func (s *Rows) ListRegisters(ctx context.Context, prefix string) iter.Seq2[Register, error] {
	return func(yield func(Register, error) bool) {
		in := store.Range{Space: registerSpace, Before: store.End(prefix)}
		if prefix != "" {
			in.After = lowerBound(prefix)
		}
		for record, err := range s.records.Scan(ctx, in) {
			if err == nil && !strings.HasPrefix(record.Name, prefix) {
				continue
			}
			if !yield(registerOf(&record), err) || err != nil {
				return
			}
		}
	}
}
