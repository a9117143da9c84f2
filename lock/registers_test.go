package lock

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"iter"

	"github.com/pawlhq/pawl/bucket"
	"github.com/pawlhq/pawl/event"
	"github.com/pawlhq/pawl/ledger"
)

// registers are those of a ledger that has a store's troubles: lost, late and
// doubled requests and answers. A refusal that a ledger does not know, and its
// errors without a kind, are unclear.
type registers struct{ bucket.Store }

var errLedger = errors.New("the ledger is not answering")

// ReadRegister implements [ledger.Registers].
func (r *registers) ReadRegister(ctx context.Context, name string) (ledger.Register, error) {
	info, body, err := r.Get(ctx, event.Object{Bucket: "b", Key: name})
	if errors.Is(err, bucket.ErrNotFound) {
		return ledger.Register{Name: name}, nil
	}
	if err != nil {
		return ledger.Register{}, fmt.Errorf("%w: %v", translated(err), err)
	}
	value, err := io.ReadAll(body)
	return ledger.Register{Name: name, Version: info.ETag, Value: value}, err
}

// WriteRegister implements [ledger.Registers].
func (r *registers) WriteRegister(ctx context.Context, name, version string, value []byte) (string, error) {
	o := bucket.Object{Body: bytes.NewReader(value), Size: int64(len(value)), ContentType: mediaType}
	next, err := r.Put(ctx, event.Object{Bucket: "b", Key: name}, o, bucket.Condition{IfAbsent: version == "", IfMatch: version})
	if err != nil {
		return "", fmt.Errorf("%w: %v", translated(err), err)
	}
	return next, nil
}

func translated(err error) error {
	switch {
	case errors.Is(err, bucket.ErrPrecondition):
		return ledger.ErrRegisterChanged
	case permanent(err):
		return ledger.ErrUnusable
	}
	return errLedger
}

// ListRegisters implements [ledger.Registers].
func (r *registers) ListRegisters(context.Context, string) iter.Seq2[ledger.Register, error] {
	panic("nobody needs it")
}
