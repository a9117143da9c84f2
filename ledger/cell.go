package ledger

import (
	"context"
	"errors"
	"fmt"

	"github.com/pawlhq/pawl/cell"
)

// Cell returns a register as a [cell.Cell].
func Cell(r Registers, name string) cell.Cell { return &registerCell{r, name} }

type registerCell struct {
	registers Registers
	name      string
}

func (c *registerCell) String() string { return "register:" + c.name }

func (c *registerCell) Read(ctx context.Context) (cell.Value, error) {
	r, err := c.registers.ReadRegister(ctx, c.name)
	if err != nil {
		return cell.Value{}, c.failed(err, cell.ErrUnavailable)
	}
	return cell.Value{Version: r.Version, Body: r.Value}, nil
}

func (c *registerCell) Write(ctx context.Context, version string, body []byte) (next string, err error) {
	next, err = c.registers.WriteRegister(ctx, c.name, version, body)
	if err != nil {
		return "", c.failed(err, cell.ErrUnclear)
	}
	return next, nil
}

func (c *registerCell) failed(err, otherwise error) error {
	kind := otherwise
	switch {
	case errors.Is(err, ErrRegisterChanged):
		kind = cell.ErrPrecondition
	case errors.Is(err, ErrInvalidRegister), errors.Is(err, ErrRejected):
		kind = cell.ErrRefused
	case errors.Is(err, ErrUnusable) && otherwise == cell.ErrUnavailable: // a read changes nothing
		kind = cell.ErrRefused
	}
	return fmt.Errorf("%w: %s: %w", kind, c, err)
}
