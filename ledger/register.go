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

// Registers are named values in the ledger besides the rows. A write is a compare-and-swap of one
// register.
type Registers interface {
	// ReadRegister returns a register, without a Version if there is none.
	ReadRegister(ctx context.Context, name string) (Register, error)
	// WriteRegister writes value if the register has the given version; "" requires that there is
	// no register. It replaces invalid UTF-8. The next version is new among all registers.
	//
	// ErrRegisterChanged means that nothing was written, and ErrInvalidRegister that the write can
	// never succeed. After any other error, the value may have been written or may still be.
	WriteRegister(ctx context.Context, name, version string, value []byte) (next string, err error)
	// RemoveRegister removes a register that has the given version, with the errors of
	// WriteRegister.
	RemoveRegister(ctx context.Context, name, version string) error
	// ListRegisters yields the registers with a prefix, in byte order of their names. It may miss
	// concurrent writes. An error ends it.
	ListRegisters(ctx context.Context, prefix string) iter.Seq2[Register, error]
}

// Register is a named value.
type Register struct {
	Name    string
	Version string // changes with every write; empty: no register
	Value   []byte // owned by the caller
}

// Limits of a register.
const (
	MaxRegister     = 64 << 10 // bytes of a value
	MaxRegisterName = 256      // bytes of a name
)

var (
	// ErrRegisterChanged means that the register does not have the expected version.
	ErrRegisterChanged = errors.New("the register has changed")
	// ErrInvalidRegister means that the name or the value is not allowed.
	ErrInvalidRegister = errors.New("invalid register")
)

// CheckRegister returns an ErrInvalidRegister for a name or a value that is too long, or a name
// that is not printable ASCII without spaces.
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

func (s *Rows) changeRegister(ctx context.Context, c *store.Change, version string) error {
	if version != "" {
		b, err := hex.DecodeString(version)
		if err != nil || len(b) != len(c.Expect) {
			return ErrRegisterChanged
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
