package bucket

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net"
	"time"

	"github.com/pawlhq/pawl/cell"
	"github.com/pawlhq/pawl/event"
)

const (
	// proofs is what the keys of proofs and examinations have in common.
	proofs = ".pawl-doctor/"
	// proofTries is how often a request of a proof is sent.
	proofTries = 3
	// proofPause is waited before a request is sent again; then twice as long.
	// Some stores take one write a second for each key.
	proofPause = 500 * time.Millisecond
	// proofClean bounds the cleaning up, after the caller has gone.
	proofClean = 30 * time.Second
	// anETag looks like one, and is that of nothing that was written.
	anETag = "0123456789abcdef0123456789abcdef"
)

// Prove proves, in seven requests on one fresh key, what locks and updates need of
// a store: that conditional writes are refused where the condition does not hold,
// also on a key that is missing. Writers at once, and all else, it leaves to
// package doctor.
//
// The error matches [ErrIgnored] if the store ignores a precondition, which its
// text names. Others match one of this package's: ErrInvalid for a store that
// refuses conditional writes altogether. Prove needs the permissions to read, write
// and remove below ".pawl-doctor/" after prefix.
func Prove(ctx context.Context, store Store, bucketName, prefix string) (err error) {
	ref := event.Object{Bucket: bucketName, Key: prefix + proofs + rand.Text() + "/quick"}
	p := &proof{Cell: Cell{Store: store, Ref: ref, ContentType: "text/plain", Max: 1 << 10}}
	defer func() {
		ctx, stop := context.WithTimeout(context.WithoutCancel(ctx), proofClean)
		defer stop()
		switch removing := p.clean(ctx); {
		case removing == nil:
		case err == nil:
			err = fmt.Errorf("cleaning up after a look at what the store honours: %w", removing)
		default:
			err = fmt.Errorf("%w; cleaning up failed, too: %w", err, removing)
		}
	}()
	if err := p.run(ctx); err != nil {
		return fmt.Errorf("looking whether %s honours preconditions: %w", event.Quote("s3://"+bucketName), err)
	}
	return nil
}

// proof is an object that no other program uses.
type proof struct {
	Cell
	written bool // the object may exist
}

func (p *proof) run(ctx context.Context) error {
	if _, err := p.refuse(ctx, anETag, "If-Match on a missing key"); err != nil {
		return err
	}
	first, _, err := p.accept(ctx, "", "If-None-Match: *")
	if err != nil {
		return err
	}
	again, err := p.refuse(ctx, "", "If-None-Match")
	if err != nil {
		return err
	}
	_, kept, err := p.accept(ctx, first, "If-Match")
	if err != nil {
		return err
	}
	mismatched, err := p.refuse(ctx, first, "If-Match")
	if err != nil {
		return err
	}
	now, err := p.Read(ctx)
	switch {
	case err != nil:
		return err
	case string(now.Body) == again:
		return p.ignores("If-None-Match")
	case string(now.Body) == mismatched:
		return p.ignores("If-Match")
	case string(now.Body) != kept:
		return fmt.Errorf("%w: a read does not show what was just written", ErrInvalid)
	}
	return nil
}

// accept makes a write whose condition holds.
func (p *proof) accept(ctx context.Context, version, precondition string) (next, text string, err error) {
	fate, next, text, err := p.write(ctx, version, cell.Trust{Refusal: true})
	if err == nil && fate != cell.Landed {
		err = fmt.Errorf("%w: a write with %s was refused, although the condition held", ErrInvalid, precondition)
	}
	return next, text, err
}

// refuse makes a write whose condition does not hold.
func (p *proof) refuse(ctx context.Context, version, precondition string) (text string, err error) {
	fate, _, text, err := p.write(ctx, version, cell.Trust{Refusal: true, Precondition: true})
	if err == nil && fate == cell.Landed {
		err = p.ignores(precondition)
	}
	return text, err
}

// ignores returns the error of a store that accepted what it should refuse.
func (p *proof) ignores(precondition string) error {
	return fmt.Errorf("%w: it ignores %s, so that nothing can be locked in it, nor updated safely: use a store that honours it (%q tells more)",
		ErrIgnored, precondition, "pawl doctor s3://"+p.Ref.Bucket)
}

// write sends a text that nothing else has, which tells it from all other writes.
func (p *proof) write(ctx context.Context, version string, trust cell.Trust) (fate cell.Fate, next, text string, err error) {
	text = "pawl doctor " + rand.Text()
	w := cell.Write{
		Send: func(ctx context.Context) (err error) {
			next, err = p.Write(ctx, version, []byte(text))
			if dial := Unsent(err); dial != nil {
				return fmt.Errorf("%w: %w", cell.ErrUnsent, dial)
			}
			p.written = p.written || err == nil || errors.Is(err, ErrUnclear) || errors.Is(err, ErrNoETag)
			return err
		},
		Look: func(ctx context.Context, answer error) (cell.Fate, error) {
			now, err := p.Read(ctx)
			switch {
			case err == nil && string(now.Body) == text:
				next = now.Version
				return cell.Landed, nil
			case err == nil && errors.Is(answer, ErrPrecondition):
				return cell.Lost, nil
			}
			return cell.Unclear, err
		},
		Pace:  proofPace,
		Trust: trust, Resolves: 1,
	}
	fate, err = w.Run(ctx)
	return fate, next, text, err
}

// clean removes the object.
func (p *proof) clean(ctx context.Context) error {
	for try := 1; p.written; try++ {
		err := p.Store.Delete(ctx, p.Ref, Condition{})
		if err == nil || errors.Is(err, cell.ErrRefused) {
			return err
		}
		if stop := proofPace(ctx, try, err); stop != nil {
			return stop
		}
	}
	return nil
}

// proofPace waits before a request is sent again, three times in all.
func proofPace(ctx context.Context, try int, answer error) error {
	if try < proofTries {
		timer := time.NewTimer(proofPause * time.Duration(try))
		defer timer.Stop()
		select {
		case <-timer.C:
			return nil
		case <-ctx.Done():
		}
	}
	if errors.Is(answer, cell.ErrUnsent) {
		return fmt.Errorf("%w: %w", ErrUnavailable, answer)
	}
	return answer
}

// Unsent returns why a write was not even sent, if no connection came about.
func Unsent(err error) error {
	if op, ok := errors.AsType[*net.OpError](err); ok && op.Op == "dial" {
		return op
	}
	return nil
}
