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
	"github.com/pawlhq/pawl/internal/format"
)

// Claim is the content of the claim file. It assigns a prefix to one archive, stream and ledger.
type Claim struct {
	Format        string    `json:"format"`
	Nonce         string    `json:"nonce"`
	ID            string    `json:"archive"`
	Stream        string    `json:"stream"`
	StreamCreated time.Time `json:"stream_created"`
	// Table is the ID of the ledger, as in its marker.
	Table      string `json:"table"`
	Generation int64  `json:"generation"`
	// Origin is the earliest arrival time of the records. Zero means the oldest record in the
	// stream.
	Origin time.Time `json:"origin,omitzero"`
	Since  time.Time `json:"since"`

	Unknown jsontext.Value `json:",embed"`
}

type marker struct {
	Format     string `json:"format"`
	Nonce      string `json:"nonce"`
	ID         string `json:"archive"`
	Table      string `json:"table"`
	Generation int64  `json:"generation"`
	// Claim and Origin come from the claim file. They are empty until a worker has read it.
	Claim  string    `json:"claim,omitempty"`
	Origin time.Time `json:"origin,omitzero"`
	// Highest is the highest shard ID that any worker has listed, or empty.
	Highest string `json:"highest_shard,omitempty"`

	Unknown jsontext.Value `json:",embed"`
}

const (
	// ClaimFormat is the version of the claim file that this version of Pawl writes.
	ClaimFormat  = "pawl-archive/1"
	markerFormat = "pawl-archive-table/1"
	maxClaim     = 16 << 10
)

var (
	// ErrClaimed is returned if the prefix belongs to another archive, stream or ledger.
	ErrClaimed = errors.New("the prefix belongs to another archive")
	// ErrLostRegisters is returned if the ledger's registers are missing or of an earlier
	// generation.
	ErrLostRegisters = errors.New("the ledger does not have the registers of this archive")
)

// ClaimKey returns the key of the claim file below a prefix.
func ClaimKey(prefix string) string { return prefix + reserved + "archive" }

func (a *Archive) claimCell() cell.Cell {
	return &bucket.Cell{Store: a.Store, Ref: a.object(ClaimKey(a.Prefix)), ContentType: "application/json", Max: maxClaim}
}

// Claim returns the claim of the prefix, and creates the claim file if there is none.
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

// claimFreshPrefix checks the prefix first. A worker that starts at the same time creates the file
// before it stores objects.
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

// checkFresh returns an error if the prefix or the ledger shows an earlier archive. It reads the
// marker last, because another new worker writes it before any object.
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

// ExistingClaim returns the claim of the prefix, or [ErrClaimed].
func (a *Archive) ExistingClaim(ctx context.Context) (Claim, error) {
	c, _, err := a.readClaim(ctx)
	if err == nil && c.ID == "" {
		err = fmt.Errorf("%w: no claim file %s: nothing was ever stored below this prefix, or the claim file was deleted", ErrClaimed, a.claimCell())
	}
	return c, err
}

func (a *Archive) readClaim(ctx context.Context) (Claim, string, error) {
	cl := a.claimCell()
	v, err := a.read(ctx, cl)
	if err != nil || v.Version == "" {
		return Claim{}, "", err
	}
	var c Claim
	if err := json.Unmarshal(v.Body, &c); err != nil || format.Check(c.Format, ClaimFormat) != nil || c.ID == "" {
		return Claim{}, "", fmt.Errorf("%w: %s is not a claim file of this version of Pawl: choose another prefix", ErrClaimed, cl)
	}
	return c, v.Version, nil
}

// createClaim writes the marker first. Other workers conclude from a claim file without a marker
// that registers were lost.
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
		Format: ClaimFormat, Nonce: a.Nonce(), ID: a.identity(id), Stream: id.ARN, StreamCreated: id.Created,
		Origin: a.Origin, Since: a.Now().UTC(),
	}
}

// Workers that claim the prefix at the same time compute the same identity.
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
	if err := json.Unmarshal(v.Body, &m); err != nil || format.Check(m.Format, markerFormat) != nil {
		return marker{}, "", fmt.Errorf("%w: %s is not a marker of this version of Pawl", ErrBroken, a.markerCell())
	}
	return m, v.Version, nil
}

func (a *Archive) checkMarker(ctx context.Context, c Claim) error {
	_, _, err := a.currentMarker(ctx, c)
	return err
}

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

func (a *Archive) confirmClaim(ctx context.Context, c Claim) error {
	now, _, err := a.readClaim(ctx)
	if err == nil && now.Nonce != c.Nonce {
		err = fmt.Errorf("%w: %s has changed since this worker started (generation %d then, %d now): restart the worker", ErrStale, a.claimCell(), c.Generation, now.Generation)
	}
	return err
}

// Recover binds the archive to this ledger after the registers or the claim file were lost. When it
// returns, no PUT of the previous generation can start or continue.
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

// version is the version of the claim file, or "" if there is none.
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
		Claim: c.Nonce, Origin: c.Origin, Highest: m.Highest, Unknown: m.Unknown,
	}
	_, err = a.replace(ctx, a.markerCell(), was, encodeJSON(m), m.Nonce)
	return c, err
}

// RecoveryWait is the time until earlier signatures have expired and their uploads have ended.
const RecoveryWait = signatureValidity + maxUploadTime + maxClockSkew

const maxClockSkew = 5 * time.Minute

func encodeJSON(v any) []byte {
	b, err := json.Marshal(v, jsontext.AllowInvalidUTF8(true)) // a host name may not be UTF-8
	if err != nil {
		panic(err) // cannot happen with the types of this package
	}
	return b
}
