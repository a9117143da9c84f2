package ledger_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/pawlhq/pawl/cell"
	"github.com/pawlhq/pawl/ledger"
)

type answering struct {
	ledger.Registers
	err error
}

func (a answering) ReadRegister(context.Context, string) (ledger.Register, error) {
	return ledger.Register{}, a.err
}

func (a answering) WriteRegister(context.Context, string, string, []byte) (string, error) {
	return "", a.err
}

func TestCellErrors(t *testing.T) {
	kinds := []error{cell.ErrPrecondition, cell.ErrConflict, cell.ErrRefused, cell.ErrUnclear, cell.ErrUnavailable, cell.ErrUnsent}
	for _, c := range []struct{ answer, read, write error }{
		{ledger.ErrRegisterChanged, cell.ErrPrecondition, cell.ErrPrecondition},
		{ledger.ErrInvalidRegister, cell.ErrRefused, cell.ErrRefused},
		{ledger.ErrUnusable, cell.ErrRefused, cell.ErrUnclear},
		{context.DeadlineExceeded, cell.ErrUnavailable, cell.ErrUnclear},
	} {
		register := ledger.Cell(answering{err: fmt.Errorf("the ledger says: %w", c.answer)}, "audit/lease")
		_, read := register.Read(t.Context())
		_, write := register.Write(t.Context(), "", nil)
		for _, kind := range kinds {
			if errors.Is(read, kind) != (kind == c.read) || errors.Is(write, kind) != (kind == c.write) {
				t.Errorf("%v, %v: want %v alone, and %v", read, write, c.read, c.write)
			}
		}
		for _, err := range []error{read, write} {
			if !errors.Is(err, c.answer) || !strings.Contains(err.Error(), "register:audit/lease: the ledger says") {
				t.Errorf("%v: want the register named, and %v", err, c.answer)
			}
		}
	}
}
