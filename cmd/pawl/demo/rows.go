package demo

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/pawlhq/pawl/ledger"
)

// rows is a snapshot of the ledger, by object key.
type rows map[string]*ledger.Row

func readRows(ctx context.Context, s ledger.Store) (rows, error) {
	all := rows{}
	for row, err := range s.Scan(ctx, ledger.Range{Pipeline: pipelineName, Bucket: inputBucket}) {
		if err != nil {
			return nil, fmt.Errorf("read the ledger: %w", err)
		}
		all[row.Key] = &row
	}
	return all, nil
}

// held returns the number of leases of a process.
func (rs rows) held(pid int) (n int) {
	for _, r := range rs {
		// An owner is host/pid/nonce.
		if part := strings.Split(r.Lease.Owner, "/"); len(part) >= 2 && part[len(part)-2] == strconv.Itoa(pid) {
			n++
		}
	}
	return n
}

func (rs rows) takenOver() (n int) {
	for _, r := range rs {
		for _, e := range r.History {
			if e.What == "taken over" {
				n++
			}
		}
	}
	return n
}

func (rs rows) unfinished(now time.Time) (waiting, dead []string) {
	for _, r := range rs {
		switch state := r.State(now); {
		case state == ledger.StateDead:
			dead = append(dead, fmt.Sprintf("%s is dead: %s", r.Object(), r.LastError))
		case state == ledger.StateFailed:
			waiting = append(waiting, fmt.Sprintf("%s is failed: %s", r.Object(), r.LastError))
		case state != ledger.StateSettled:
			waiting = append(waiting, fmt.Sprintf("%s is %s", r.Object(), state))
		case !r.VerifyAt.IsZero():
			waiting = append(waiting, fmt.Sprintf("%s waits for its verification", r.Object()))
		}
	}
	return waiting, dead
}

// newlyDead returns a line for each row that died since the last call. known has the fences of the
// known dead rows by key, and is updated.
func (rs rows) newlyDead(known map[string]int64) (lines []string) {
	for _, key := range slices.Sorted(maps.Keys(rs)) {
		r := rs[key]
		fence, ok := known[key]
		if !r.Dead || ok && fence == r.Lease.Fence {
			continue
		}
		known[key] = r.Lease.Fence
		name := r.Object().String()
		lines = append(lines, fmt.Sprintf("%s failed permanently: %s", name, strings.TrimPrefix(r.LastError, name+": ")))
	}
	return lines
}
