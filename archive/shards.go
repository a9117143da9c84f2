package archive

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/pawlhq/pawl/ledger"
)

// Shards returns all shards that must be stored: the listed shards, and unfinished shards that the
// stream no longer lists. It assumes that an unlisted shard ends before the youngest shard begins.
//
// Shards creates missing registers before it raises Highest in the marker. A shard up to Highest
// without a register is therefore finished. A parent above Highest without a register was created
// and closed while no worker ran.
//
// Shards reads the registers before the stream, because a shard may appear in both between the two
// requests.
func (a *Archive) Shards(ctx context.Context, c Claim) ([]Shard, error) {
	known, err := a.registered(ctx)
	if err != nil {
		return nil, err
	}
	listed, err := a.Stream.Shards(ctx)
	if err != nil {
		return nil, err
	}
	m, version, err := a.currentMarker(ctx, c)
	if err != nil {
		return nil, err
	}
	f := &shardSet{Archive: a, claim: c, marker: m, known: known, listed: map[string]Shard{}, youngest: begin}
	for _, s := range listed {
		f.listed[s.ID] = s
		f.youngest = later(f.youngest, s.First)
	}
	all := f.addUnlisted(listed)
	if created, err := f.createMissing(ctx, all); err != nil {
		return nil, err
	} else if created { // list again, because the process may have paused
		return a.Shards(ctx, c)
	}
	if err := f.raiseHighest(ctx, version); err != nil {
		return nil, err
	}
	if err := f.removeFinished(ctx); err != nil {
		return nil, err
	}
	slices.SortFunc(all, func(s, t Shard) int { return strings.Compare(s.ID, t.ID) })
	return all, nil
}

func (a *Archive) registered(ctx context.Context) (map[string]registeredShard, error) {
	known, prefix := map[string]registeredShard{}, a.registerName("shard", "")
	for r, err := range a.Registers.ListRegisters(ctx, prefix) {
		if err != nil {
			return nil, err
		}
		p, err := decodeProgress(r.Value)
		if err != nil {
			return nil, err
		}
		known[strings.TrimPrefix(r.Name, prefix)] = registeredShard{p, r.Version}
	}
	return known, nil
}

type registeredShard struct {
	Progress
	version string
}

type shardSet struct {
	*Archive
	claim    Claim
	marker   marker
	known    map[string]registeredShard
	listed   map[string]Shard
	youngest Number
}

func (f *shardSet) addUnlisted(listed []Shard) []Shard {
	all := slices.Clone(listed)
	for id, p := range f.known {
		if _, ok := f.listed[id]; !ok && p.State != Finished {
			all = append(all, f.unlistedShard(id))
		}
	}
	for _, s := range listed {
		for _, parent := range s.Parents {
			_, isListed := f.listed[parent]
			_, isKnown := f.known[parent]
			if !isListed && !isKnown && f.marker.Highest != "" && compareIDs(f.marker.Highest, parent) < 0 {
				f.known[parent] = registeredShard{}
				all = append(all, f.unlistedShard(parent))
			}
		}
	}
	return all
}

func (f *shardSet) createMissing(ctx context.Context, all []Shard) (created bool, err error) {
	for _, s := range all {
		old := f.known[s.ID]
		if old.Generation >= f.claim.Generation {
			continue
		}
		p := newProgress(f.claim.Generation)
		p.Nonce = f.Nonce()
		_, err := f.replace(ctx, f.register("shard", s.ID), old.version, encodeJSON(p), p.Nonce)
		if err != nil && !errors.Is(err, ErrStale) { // another worker created it
			return false, err
		}
		created = true
	}
	return created, nil
}

func (f *shardSet) unlistedShard(id string) Shard {
	return Shard{ID: id, Last: f.youngest.before(), unlisted: true}
}

// raiseHighest must run after the registers of all shards were created.
func (f *shardSet) raiseHighest(ctx context.Context, version string) error {
	m := f.marker
	for id := range f.listed {
		if compareIDs(m.Highest, id) < 0 {
			m.Highest = id
		}
	}
	if m.Highest == f.marker.Highest {
		return nil
	}
	m.Nonce = f.Nonce()
	_, err := f.replace(ctx, f.markerCell(), version, encodeJSON(m), m.Nonce)
	if errors.Is(err, ErrStale) { // another worker or a recovery wrote the marker
		return f.checkMarker(ctx, f.claim)
	}
	return err
}

// removeFinished removes the registers of finished shards. A register is needed until the stream no
// longer lists the shard and all of its listed children have had an owner.
func (f *shardSet) removeFinished(ctx context.Context) error {
	needed := map[string]bool{}
	for _, s := range f.listed {
		if p := f.known[s.ID]; p.Generation < f.claim.Generation || p.Fence == 0 {
			for _, parent := range s.Parents {
				needed[parent] = true
			}
		}
	}
	for id, p := range f.known {
		_, listed := f.listed[id]
		if p.State != Finished || listed || needed[id] || compareIDs(f.marker.Highest, id) < 0 {
			continue
		}
		lease, err := f.Registers.ReadRegister(ctx, f.registerName("lease", id))
		if err == nil && lease.Version != "" {
			err = f.removeRegister(ctx, lease)
		}
		if err == nil {
			err = f.removeRegister(ctx, ledger.Register{Name: f.registerName("shard", id), Version: p.version})
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// removeRegister ignores a register that has changed.
func (a *Archive) removeRegister(ctx context.Context, r ledger.Register) error {
	err := a.Registers.RemoveRegister(ctx, r.Name, r.Version)
	if errors.Is(err, ledger.ErrRegisterChanged) {
		err = nil
	}
	return err
}

// compareIDs orders shard IDs by age: they end in an increasing number.
func compareIDs(a, b string) int { return cmp.Or(cmp.Compare(len(a), len(b)), strings.Compare(a, b)) }
