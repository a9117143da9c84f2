package archive

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/pawlhq/pawl/internal/format"
	"github.com/pawlhq/pawl/lock"
)

type heartbeat struct {
	format.Header
	Owner  string   `json:"owner"`
	Mode   mode     `json:"mode"`
	Shards []string `json:"shards"`
	Nonce  string   `json:"nonce"`
}

type peerHeartbeat struct {
	version string
	mode    mode
	since   time.Time // first poll that returned the heartbeat
	changed time.Time // like since, but zero for a worker's first heartbeat, which may be old
}

// removeAfterLeases is the number of leases without a heartbeat before a worker's register is
// removed. A running worker writes it again.
const removeAfterLeases = 20

type pollResult struct {
	version    string // of this worker's own heartbeat
	peers      peers
	freeShards []string
	next       time.Duration // until the next lease expires
}

func (v *pollResult) sameAs(w *pollResult) bool {
	return v.peers == w.peers && slices.Equal(v.freeShards, w.freeShards)
}

// poll reads all heartbeats and leases. A worker can acquire a lease only after it has observed it
// unchanged for longer than its TTL. It therefore observes all leases continuously, so that it can
// acquire one as soon as its share rises.
func (w *worker) poll(ctx context.Context) (pollResult, error) {
	v := pollResult{next: w.Lease}
	prefix := "archive/" + w.Name + "/worker/"
	for r, err := range w.Registers.ListRegisters(ctx, prefix) {
		if err != nil {
			return v, err
		}
		if r.Name == prefix+w.id {
			v.version = r.Version
			continue
		}
		s, known := w.seen[r.Name]
		if s.version != r.Version {
			var h heartbeat
			_ = format.Decode(r.Value, &h) // an invalid heartbeat has no mode, so it does not count
			if s.version, s.mode, s.since = r.Version, h.Mode, w.Now(); known {
				s.changed = s.since
			}
			w.seen[r.Name] = s
		}
		if w.Now().Sub(s.since) >= removeAfterLeases*w.Lease {
			if err := w.removeRegister(ctx, r); err != nil {
				return v, err
			}
			delete(w.seen, r.Name)
			continue
		}
		switch alive := w.Now().Sub(s.changed) < w.heartbeatTimeout(); {
		case alive && s.mode == sharing:
			v.peers.sharing++
		case alive && s.mode == probing:
			v.peers.probing++
		}
	}
	prefix = "archive/" + w.Name + "/lease/"
	for r, err := range w.Registers.ListRegisters(ctx, prefix) {
		if err != nil {
			return v, err
		}
		id := strings.TrimPrefix(r.Name, prefix)
		if w.isHeld(id) {
			continue
		}
		m, err := w.mutex(id)
		if err != nil {
			continue // acquire logs the error
		}
		switch left, err := m.Observe(r); {
		case err != nil:
		case left == 0:
			v.freeShards = append(v.freeShards, id)
		default:
			v.next = min(v.next, left)
		}
	}
	return v, nil
}

// heartbeatTimeout is the time after which a silent worker does not count. It is below a lease, so
// that shares have risen before a dead worker's leases expire.
func (w *worker) heartbeatTimeout() time.Duration { return w.Lease * 3 / 4 }

func (w *worker) mutex(id string) (*lock.Mutex, error) {
	m := w.mutexes[id]
	if m == nil {
		var err error
		m, err = lock.OnRegister(w.Registers, "archive/"+w.Name+"/lease/"+id, lock.Config{TTL: w.Lease, Owner: w.Owner})
		if err != nil {
			return nil, err
		}
		w.mutexes[id] = m
	}
	return m, nil
}

// writeHeartbeat does not renew the heartbeat of a resting worker, which does not count anyway.
func (w *worker) writeHeartbeat(ctx context.Context, version string, own mode) error {
	if own == resting && w.heartbeatMode == resting {
		return nil
	}
	h := heartbeat{format.Header{V: format.Register}, w.Owner, own, w.heldShards(), w.Nonce()}
	_, err := w.register("worker", w.id).Write(ctx, version, encodeJSON(h))
	if err == nil {
		w.heartbeatMode = own
	}
	return err
}
