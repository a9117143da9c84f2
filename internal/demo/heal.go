package demo

import (
	"context"
	"encoding/json"
	"fmt"
	"time"
)

// heal looks at the bucket again, for what no notification told of, and has the
// workers look at those objects.
func (s *show) heal(ctx context.Context) error {
	const rounds = 3 // one is enough, unless something is wrong
	for range rounds {
		lost, err := s.lost(ctx)
		if err != nil {
			return err
		}
		if len(lost) == 0 {
			break
		}
		for _, h := range lost {
			if err := s.send(ctx, h); err != nil {
				return err
			}
		}
		s.report.Effects.Healed += len(lost)
		line := "a second look at the bucket healed " + some(len(lost), "object") + " whose last notification was dropped"
		if err := s.settle(ctx, line); err != nil {
			return err
		}
	}
	return nil
}

// lost lists the objects of whose last change the ledger knows nothing.
func (s *show) lost(ctx context.Context) ([]hint, error) {
	// The bucket first: what changes in between only looks lost.
	bucket, err := s.store.look(inputBucket)
	if err != nil {
		return nil, err
	}
	rs, err := readRows(ctx, s.ledger)
	if err != nil {
		return nil, err
	}
	return rs.lost(bucket), nil
}

func (s *show) send(ctx context.Context, h hint) error {
	h.Account, h.EventTime = "pawl-demo", time.Now().UTC()
	payload, err := json.Marshal(h)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeoutCause(ctx, patience, errPatience)
	defer cancel()
	if _, err := s.relay.deliver(ctx, payload); err != nil {
		return fmt.Errorf("tell of %s: %w", object(h.Bucket, h.Object.Key), err)
	}
	return nil
}
