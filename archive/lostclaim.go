package archive

import (
	"context"
	"errors"
	"fmt"

	"github.com/pawlhq/pawl/ledger"
)

// ErrLostClaim is returned if the ledger has registers of the archive, but the bucket has no claim
// file. Either the bucket was emptied, or it is another store.
var ErrLostClaim = errors.New("the bucket does not have the claim file of this archive")

func (a *Archive) newestGeneration(ctx context.Context) (newest int64, err error) {
	for r, err := range a.Registers.ListRegisters(ctx, a.registerName("shard", "")) {
		if err != nil {
			return 0, err
		}
		p, err := decodeProgress(r.Value)
		if err != nil {
			return 0, fmt.Errorf("%s: %w", ledger.Cell(a.Registers, r.Name), err)
		}
		newest = max(newest, p.Generation)
	}
	return newest, nil
}

// checkUnclaimed returns an error if the ledger shows that the prefix had a claim file. A marker
// without a claim is no error: the worker was killed between the two writes.
func (a *Archive) checkUnclaimed(ctx context.Context, m marker) error {
	newest, err := a.newestGeneration(ctx)
	if err == nil && (m.Claim != "" || newest > 0) {
		err = fmt.Errorf("%w: %s is missing, but the ledger has registers of the archive %q: use the store that has its objects, or, if they are lost, run \"pawl archive recover\"",
			ErrLostClaim, a.claimCell(), a.Name)
	}
	return err
}

// confirmMarker adds the claim's nonce to a marker that has none. Workers then reject every other
// claim file.
func (a *Archive) confirmMarker(ctx context.Context, c Claim) error {
	for {
		m, version, err := a.readMarker(ctx)
		if err == nil {
			err = a.compareMarker(m, version, c)
		}
		if err != nil || m.Claim != "" {
			return err
		}
		m.Claim, m.Origin, m.Nonce = c.Nonce, c.Origin, a.Nonce()
		if _, err := a.replace(ctx, a.markerCell(), version, encodeJSON(m), m.Nonce); !errors.Is(err, ErrStale) {
			return err
		}
	}
}

// claimForRecovery returns the claim for a recovery without a claim file. It fails unless an object
// or a register shows that the archive existed.
func (a *Archive) claimForRecovery(ctx context.Context, id StreamID) (Claim, error) {
	own, err := a.anyObject(ctx)
	if err != nil {
		return Claim{}, err
	}
	m, _, err := a.readMarker(ctx)
	if err != nil {
		return Claim{}, err
	}
	newest, err := a.newestGeneration(ctx)
	if err != nil {
		return Claim{}, err
	}
	if own == "" && m.Claim == "" && newest == 0 {
		return Claim{}, fmt.Errorf("%w: no claim file %s: nothing was ever stored below this prefix, or the claim file was deleted", ErrClaimed, a.claimCell())
	}
	c := a.newClaim(id)
	if c.Generation = newest; own != "" {
		c.Generation = max(newest, 1) // the next generation is at least 2, so workers list the stored objects
	}
	if m.Claim != "" {
		c.Origin = m.Origin
	}
	return c, nil
}
