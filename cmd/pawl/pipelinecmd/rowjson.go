package pipelinecmd

import (
	"time"

	"github.com/pawlhq/pawl/cmd/pawl/app"
	"github.com/pawlhq/pawl/ledger"
)

// The field names of rowJSON are part of the command line interface. Sizes are in bytes.
type rowJSON struct {
	Pipeline  string `json:"pipeline"`
	Bucket    string `json:"bucket"`
	Key       string `json:"key"`                  // with replacement characters for invalid UTF-8
	KeyBase64 string `json:"key_base64,omitempty"` // if the key is not UTF-8
	VersionID string `json:"version_id,omitempty"` // only with identity: version

	State string       `json:"state"`        // a ledger.State
	Due   time.Time    `json:"due,omitzero"` // next action
	Want  *versionJSON `json:"want"`
	Have  *versionJSON `json:"have"`  // committed; or null
	Lease *leaseJSON   `json:"lease"` // or null
	Fence int64        `json:"fence"` // of the latest claim
	// Doubt: an unfinished attempt may have had an effect.
	Doubt    bool      `json:"doubt"`
	Forced   bool      `json:"forced"` // by an operator
	Dead     bool      `json:"dead"`
	Attempts int       `json:"attempts"` // at this version
	RetryAt  time.Time `json:"retry_at,omitzero"`

	LastError string    `json:"last_error,omitempty"`
	VerifyAt  time.Time `json:"verify_at,omitzero"`
	EventTime time.Time `json:"event_time,omitzero"` // of the newest event
	// Disorder counts events that Pawl ignored because of their sequencer, although their time is newer.
	Disorder int `json:"disorder,omitempty"`

	CreatedAt time.Time `json:"created_at"`
	UpdatedAt time.Time `json:"updated_at"`
}

type versionJSON struct {
	Kind       string    `json:"kind"` // created or removed
	Sequencer  string    `json:"sequencer,omitempty"`
	Generation uint64    `json:"generation"`
	VersionID  string    `json:"version_id,omitempty"`
	ETag       string    `json:"etag,omitempty"`
	ModTime    time.Time `json:"mod_time,omitzero"`
	Size       int64     `json:"size"`
}

type leaseJSON struct {
	Owner string    `json:"owner"`
	Until time.Time `json:"until"`
	Live  bool      `json:"live"`
}

func toJSON(r *ledger.Row, now time.Time) rowJSON {
	out := rowJSON{
		Pipeline: r.Pipeline, Bucket: r.Bucket, VersionID: r.VersionID,
		State: string(r.State(now)), Due: r.Due(), Want: toVersion(r.Want), Fence: r.Lease.Fence,
		Doubt: r.Doubt, Forced: r.Forced, Dead: r.Dead, Attempts: r.Attempts, RetryAt: r.RetryAt,
		LastError: r.LastError, VerifyAt: r.VerifyAt, EventTime: r.EventTime, Disorder: r.Disorder,
		CreatedAt: r.CreatedAt, UpdatedAt: r.UpdatedAt,
	}
	out.Key, out.KeyBase64 = app.KeyJSON(r.Key)
	if r.Have.Kind != 0 {
		out.Have = toVersion(r.Have)
	}
	if r.Unreadable != nil {
		out.Want, out.LastError = nil, r.Unreadable.Error()
	}
	if r.Held() {
		out.Lease = &leaseJSON{Owner: r.Lease.Owner, Until: r.Lease.Until, Live: r.Live(now)}
	}
	return out
}

func toVersion(v ledger.Version) *versionJSON {
	return &versionJSON{
		Kind: v.Kind.String(), Sequencer: v.Sequencer.Raw(), Generation: v.Generation,
		VersionID: v.Identity.VersionID, ETag: v.Identity.ETag, ModTime: v.Identity.ModTime, Size: v.Identity.Size,
	}
}
