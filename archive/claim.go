package archive

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/pawlhq/pawl/bucket"
	"github.com/pawlhq/pawl/cell"
)

// Claim is the content of the claim file, which assigns a prefix to one archive of one stream,
// whose registers are in one ledger.
type Claim struct {
	Format        string    `json:"format"`
	Nonce         string    `json:"nonce"`
	ID            string    `json:"archive"`
	Stream        string    `json:"stream"`
	StreamCreated time.Time `json:"stream_created"`
	// Table is the ID of the ledger. The marker in the ledger contains the same ID.
	Table string `json:"table"`
	// Generation rises with every recovery.
	Generation int64 `json:"generation"`
	// Origin is the earliest arrival time of the archived records. Zero means the oldest record
	// that the stream had.
	Origin time.Time `json:"origin,omitzero"`
	// Since is the time when the claim file was created.
	Since time.Time `json:"since"`
}

// marker is the register that ties the ledger to a claim file.
type marker struct {
	Format     string `json:"format"`
	Nonce      string `json:"nonce"`
	ID         string `json:"archive"`
	Table      string `json:"table"`
	Generation int64  `json:"generation"`
	// Claim is the nonce of the claim file, and Origin is the Origin in the claim file. Both are
	// empty until a worker has read the claim file.
	Claim  string    `json:"claim,omitempty"`
	Origin time.Time `json:"origin,omitzero"`
	// Highest is the highest shard ID that any worker has listed. It is empty if no worker has
	// listed a shard yet.
	Highest string `json:"highest_shard,omitempty"`
}

const (
	claimFormat  = "pawl-archive/1"
	markerFormat = "pawl-archive-table/1"
	maxClaim     = 16 << 10
)

var (
	// ErrClaimed is returned if the prefix belongs to another archive, stream or ledger.
	ErrClaimed = errors.New("the prefix belongs to another archive")
	// ErrLostRegisters is returned if the registers of this archive are missing in the ledger, or
	// are of an earlier generation.
	ErrLostRegisters = errors.New("the ledger does not have the registers of this archive")
)

// ClaimKey returns the key of the claim file below a prefix.
func ClaimKey(prefix string) string { return prefix + reserved + "archive" }

func (a *Archive) claimCell() cell.Cell {
	return &bucket.Cell{Store: a.Store, Ref: a.object(ClaimKey(a.Prefix)), ContentType: "application/json", Max: maxClaim}
}

// Claim returns the claim of the prefix. If the prefix has no claim file, Claim creates it for
// the stream.
func (a *Archive) Claim(ctx context.Context) (Claim, error) {
	id, _, err := a.Stream.Identify(ctx)
	if err != nil {
		return Claim{}, err
	}
	c, _, err := a.readClaim(ctx)
	if err != nil {
		return Claim{}, err
	}
	if c.ID == "" {
		if c, err = a.claimFreshPrefix(ctx, id); err != nil {
			return Claim{}, err
		}
	}
	if err := a.checkStream(c, id); err != nil {
		return Claim{}, err
	}
	return c, a.confirmMarker(ctx, c)
}

// claimFreshPrefix claims a prefix without a claim file, if the prefix is fresh. It reads the
// claim file again first, because a worker that started at the same time may have created it
// and stored objects.
func (a *Archive) claimFreshPrefix(ctx context.Context, id StreamID) (Claim, error) {
	fresh := a.checkFresh(ctx, id)
	c, _, err := a.readClaim(ctx)
	switch {
	case err != nil || c.ID != "":
		return c, err
	case fresh != nil:
		return Claim{}, fresh
	}
	return a.createClaim(ctx, id)
}

// checkFresh returns an error if the prefix or the ledger shows an earlier archive, because an
// archive with a new claim would store the same records again. It reads the marker last: another
// worker that starts at the same time writes the marker before any object.
func (a *Archive) checkFresh(ctx context.Context, id StreamID) error {
	own, err := a.anyObject(ctx)
	if err != nil {
		return err
	}
	m, version, err := a.readMarker(ctx)
	switch {
	case err != nil:
		return err
	case version != "" && m.ID != a.identity(id):
		return fmt.Errorf("%w: this ledger already has an archive %q with another prefix or stream: give the new archive another name", ErrClaimed, a.Name)
	case own != "" && version == "":
		return fmt.Errorf("%w: %s belongs to an archive whose claim file and registers are missing: run \"pawl archive recover\", or choose another prefix", ErrClaimed, a.object(own))
	}
	return a.checkUnclaimed(ctx, m)
}

// anyObject returns the key of some archive object below the prefix, or "" if there is none.
func (a *Archive) anyObject(ctx context.Context) (string, error) {
	for info, err := range a.Store.List(ctx, a.Bucket, a.Prefix, a.listAfter(time.Time{})) {
		if err != nil {
			return "", err
		}
		if _, err := ParseKey(a.Prefix, info.Key); err == nil {
			return info.Key, nil
		}
	}
	return "", nil
}

// ExistingClaim returns the claim of the prefix, or [ErrClaimed] if the prefix has none.
func (a *Archive) ExistingClaim(ctx context.Context) (Claim, error) {
	c, _, err := a.readClaim(ctx)
	if err == nil && c.ID == "" {
		err = fmt.Errorf("%w: no claim file %s: nothing was ever stored below this prefix, or the claim file was deleted", ErrClaimed, a.claimCell())
	}
	return c, err
}

// readClaim returns the claim and its version. If there is no claim file, both are zero.
func (a *Archive) readClaim(ctx context.Context) (Claim, string, error) {
	cl := a.claimCell()
	v, err := a.read(ctx, cl)
	if err != nil || v.Version == "" {
		return Claim{}, "", err
	}
	var c Claim
	if err := json.Unmarshal(v.Body, &c); err != nil || c.Format != claimFormat || c.ID == "" {
		return Claim{}, "", fmt.Errorf("%w: %s is not a claim file of this version of Pawl: choose another prefix", ErrClaimed, cl)
	}
	return c, v.Version, nil
}

// createClaim creates the claim file. It writes the marker of the ledger first, because other
// workers take a claim file without a marker as a sign that registers were lost.
func (a *Archive) createClaim(ctx context.Context, id StreamID) (Claim, error) {
	m, version, err := a.readMarker(ctx)
	if err != nil {
		return Claim{}, err
	}
	if version == "" {
		m = marker{Format: markerFormat, Nonce: a.Nonce(), ID: a.identity(id), Table: a.Nonce(), Generation: 1}
		_, err := a.replace(ctx, a.markerCell(), "", encodeJSON(m), m.Nonce)
		if errors.Is(err, ErrStale) {
			m, _, err = a.readMarker(ctx)
		}
		if err != nil {
			return Claim{}, err
		}
	}
	c := a.newClaim(id)
	c.Table, c.Generation = m.Table, m.Generation
	_, err = a.replace(ctx, a.claimCell(), "", encodeJSON(c), c.Nonce)
	if errors.Is(err, ErrStale) {
		c, _, err = a.readClaim(ctx)
	}
	return c, err
}

func (a *Archive) newClaim(id StreamID) Claim {
	return Claim{
		Format: claimFormat, Nonce: a.Nonce(), ID: a.identity(id), Stream: id.ARN, StreamCreated: id.Created,
		Origin: a.Origin, Since: a.Now().UTC(),
	}
}

// identity returns the archive ID of this prefix and stream. All workers compute the same ID,
// so two workers that claim the prefix at the same time agree.
func (a *Archive) identity(id StreamID) string {
	sum := sha256.Sum256(encodeJSON([]string{a.Bucket, a.Prefix, id.ARN, id.Created.UTC().Format(time.RFC3339Nano)}))
	return hex.EncodeToString(sum[:16])
}

func (a *Archive) markerCell() cell.Cell { return a.register("table") }

func (a *Archive) readMarker(ctx context.Context) (marker, string, error) {
	v, err := a.read(ctx, a.markerCell())
	if err != nil || v.Version == "" {
		return marker{}, "", err
	}
	var m marker
	if err := json.Unmarshal(v.Body, &m); err != nil || m.Format != markerFormat {
		return marker{}, "", fmt.Errorf("%w: %s is not a marker of this version of Pawl", ErrBroken, a.markerCell())
	}
	return m, v.Version, nil
}

// checkMarker returns an error unless the marker of the ledger matches the claim.
func (a *Archive) checkMarker(ctx context.Context, c Claim) error {
	_, _, err := a.currentMarker(ctx, c)
	return err
}

// currentMarker returns the marker of the ledger and its version, or an error if the marker
// does not match the claim.
func (a *Archive) currentMarker(ctx context.Context, c Claim) (marker, string, error) {
	m, version, err := a.readMarker(ctx)
	if err == nil {
		err = a.compareMarker(m, version, c)
	}
	return m, version, err
}

func (a *Archive) compareMarker(m marker, version string, c Claim) error {
	switch {
	case version != "" && m.ID != c.ID:
		return fmt.Errorf("%w: %s belongs to archive %s, but this ledger's archive %q is %s", ErrClaimed, a.claimCell(), c.ID, a.Name, m.ID)
	case version == "" || m.Table != c.Table || m.Generation != c.Generation:
		return fmt.Errorf("%w: %s names table %s in generation %d, but the ledger has table %q in generation %d: use the ledger of the claim file, or run \"pawl archive recover\"",
			ErrLostRegisters, a.claimCell(), c.Table, c.Generation, m.Table, m.Generation)
	case m.Claim != "" && m.Claim != c.Nonce:
		return fmt.Errorf("%w: %s has nonce %s, but the ledger names a claim file with nonce %s: use the store that has this file, or, if the file is lost, run \"pawl archive recover\"",
			ErrLostClaim, a.claimCell(), c.Nonce, m.Claim)
	}
	return nil
}

// confirmClaim returns [ErrStale] if the claim file has changed since this worker started.
func (a *Archive) confirmClaim(ctx context.Context, c Claim) error {
	now, _, err := a.readClaim(ctx)
	if err == nil && now.Nonce != c.Nonce {
		err = fmt.Errorf("%w: %s has changed since this worker started (generation %d then, %d now): restart the worker", ErrStale, a.claimCell(), c.Generation, now.Generation)
	}
	return err
}

// Recover binds the archive to this ledger after the registers or the claim file were lost.
// When it returns, no PUT of the previous generation can start or continue. Workers then list
// the stored objects.
func (a *Archive) Recover(ctx context.Context) (Claim, error) {
	c, version, err := a.readClaim(ctx)
	if err != nil {
		return Claim{}, err
	}
	id, _, err := a.Stream.Identify(ctx)
	if err != nil {
		return Claim{}, err
	}
	if c.ID == "" {
		if c, err = a.claimForRecovery(ctx, id); err != nil {
			return Claim{}, err
		}
	}
	return a.raiseGeneration(ctx, c, version, id)
}

// raiseGeneration writes a claim file and a marker of a new generation. version is the version
// of the claim file, or "" if there is none.
func (a *Archive) raiseGeneration(ctx context.Context, c Claim, version string, id StreamID) (Claim, error) {
	if err := a.checkStream(c, id); err != nil {
		return Claim{}, err
	}
	m, was, err := a.readMarker(ctx)
	if err == nil && was != "" && m.ID != c.ID {
		err = fmt.Errorf("%w: this ledger's archive %q is %s, but %s belongs to %s", ErrClaimed, a.Name, m.ID, a.claimCell(), c.ID)
	}
	if err != nil {
		return Claim{}, err
	}
	c.Generation, c.Table, c.Nonce = max(c.Generation, m.Generation)+1, a.Nonce(), a.Nonce()
	if _, err := a.replace(ctx, a.claimCell(), version, encodeJSON(c), c.Nonce); err != nil {
		return Claim{}, err
	}
	if err := a.Sleep(ctx, RecoveryWait); err != nil {
		return Claim{}, err
	}
	m = marker{
		Format: markerFormat, Nonce: a.Nonce(), ID: c.ID, Table: c.Table, Generation: c.Generation,
		Claim: c.Nonce, Origin: c.Origin, Highest: m.Highest,
	}
	_, err = a.replace(ctx, a.markerCell(), was, encodeJSON(m), m.Nonce)
	return c, err
}

// RecoveryWait is the time that Recover waits for earlier signatures to expire and for their
// uploads to end.
const RecoveryWait = signatureValidity + maxUploadTime + maxClockSkew

// maxClockSkew is the maximum difference between a worker's clock and the store's clock.
const maxClockSkew = 5 * time.Minute

func encodeJSON(v any) []byte {
	b, err := json.Marshal(v, jsontext.AllowInvalidUTF8(true)) // a host name may not be UTF-8
	if err != nil {
		panic(err) // all types that are encoded here can be represented as JSON
	}
	return b
}
