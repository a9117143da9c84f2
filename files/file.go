package files

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/pawlhq/pawl/store"
)

// ProbeFolder is the folder below the prefix for probe objects. Audits ignore it.
const ProbeFolder = ".pawl-doctor/"

// State is the state of a file. Only Indexed files are visible.
type State uint8

// The states of a file. Their names are stored.
const (
	Pending State = iota + 1 // the upload may still be in progress
	Indexed                  // visible: the object matches the promise
	Lost                     // was indexed, but its object is missing or different
	Deleted                  // by the user, who may undelete it within the undelete window
	Purging                  // its object is being removed
	Gone                     // its object was removed; the row is a tombstone
	Expired                  // the bytes never arrived; the row is a tombstone
)

var stateNames = [...]string{"", "pending", "indexed", "lost", "deleted", "purging", "gone", "expired"}

func (s State) String() string { return stateNames[s] }

// ParseState returns the state with the given name.
func ParseState(name string) (State, error) {
	for i, n := range stateNames[1:] {
		if n == name {
			return State(i + 1), nil
		}
	}
	return 0, fmt.Errorf("unknown file state %q", name)
}

// Nonce is random. Each write of a row has a new one.
type Nonce = store.Nonce

// Promise describes the bytes of an upload. The store rejects an upload that differs.
type Promise struct {
	Size        int64 // in bytes
	ContentType string
	// SHA256 is the SHA-256 of the bytes. For a multipart file it is the SHA-256 of its parts'
	// SHA-256s.
	SHA256 [32]byte
	// PartSize is the size in bytes of each part but the last. 0: not multipart.
	PartSize int64 `json:",omitzero"`
}

// Parts returns the number of parts. 0 means that the file is not multipart.
func (p *Promise) Parts() int {
	if p.PartSize == 0 {
		return 0
	}
	return int((p.Size + p.PartSize - 1) / p.PartSize)
}

// File is a row of the index.
type File struct {
	ID     string // unique; never reused
	Entity string // owner of the file
	Key    string // object key; unique to this file
	Promise
	// Idempotency is the idempotency key of the creating request, or empty.
	Idempotency string
	// UploadID is the store's ID of the current multipart upload.
	UploadID string `json:",omitzero"`

	State      State
	WasPending bool      // a Deleted file was Pending before
	PutBy      time.Time // end of the time in which the upload may start
	LandBy     time.Time // time by the store's clock after which no upload can land
	DeletedAt  time.Time
	DropAt     time.Time // earliest time to delete the tombstone
	DueAt      time.Time // time of the next reconciliation; zero: none

	CreatedAt time.Time
	UpdatedAt time.Time
	Nonce     Nonce

	unknown string // JSON members that a newer version of Pawl wrote
}

// Deletable reports whether the user can delete the file.
func (f *File) Deletable() bool {
	return f.State == Pending || f.State == Indexed || f.State == Lost
}

// MinCharge is the minimum charge of a file in bytes. An empty file also has a cost.
const MinCharge = 4 << 10

// Usage is the storage and the open uploads of an entity.
type Usage struct {
	Bytes int64 // counted against the quota
	Open  int64 // uploads whose URLs may still be in use
}

// Usage returns the file's share of its entity's usage. A deleted file counts until it is purged.
func (f *File) Usage() (u Usage) {
	switch f.State {
	case Pending, Indexed, Lost, Deleted, Purging:
		u.Bytes = max(f.Size, MinCharge)
	}
	if f.State == Pending || f.State == Deleted && f.WasPending {
		u.Open = 1
	}
	return u
}

// Times are the durations that determine deadlines and timers.
type Times struct {
	URL      time.Duration // lifetime of an upload URL
	Parts    time.Duration // lifetime of the URLs of a multipart upload
	Upload   time.Duration // longest duration of one upload request, by the store's limits
	Undelete time.Duration // undelete window
	Delay    time.Duration // maximum delay of a notification
	Skew     time.Duration // maximum difference between the clocks of services
}

// DefaultTimes returns the default durations. Multipart URLs expire before MinIO aborts the upload,
// after one day.
func DefaultTimes() Times {
	return Times{URL: 15 * time.Minute, Parts: 12 * time.Hour, Upload: time.Hour, Undelete: 24 * time.Hour, Delay: 24 * time.Hour, Skew: 15 * time.Minute}
}

// tombstoneRetention starts when no upload can land any more. It is at least one day, because
// idempotency keys are deleted with their tombstones.
func (t *Times) tombstoneRetention() time.Duration { return max(t.Delay+t.Skew, 24*time.Hour) }

// Check returns an error if the durations are out of range.
func (t *Times) Check() error {
	switch {
	case t.URL <= 0 || t.Parts <= 0 || t.Upload <= 0 || t.Delay <= 0 || t.Skew <= 0:
		return errors.New("files: the URL lifetime, the longest upload, the notification delay and the clock skew must be above 0")
	case max(t.URL, t.Parts) > 7*24*time.Hour:
		return errors.New("files: the URL lifetime must not exceed 7 days, the limit of S3")
	case t.Undelete < 0:
		return errors.New("files: the undelete window must not be negative")
	}
	return nil
}

// ObjectInfo is the state of an object that a HEAD request returned.
type ObjectInfo struct {
	Found               bool
	Size                int64
	SHA256              [32]byte  // zero if the store does not return it
	Parts               int       // number of parts if SHA256 is composite; otherwise 0
	Date                time.Time // of the response, by the store's clock
	Entity, ContentType string
}

func (f *File) matches(s ObjectInfo) bool {
	return s.Found && s.Size == f.Size && s.SHA256 == f.SHA256 && s.Parts == f.Parts()
}

// CheckPrefix returns an error if a key prefix contains characters that are special in URLs.
func CheckPrefix(prefix string) error {
	if strings.ContainsAny(prefix, "%?#") {
		return fmt.Errorf("prefix %q contains %%, ? or #, which clients and proxies interpret in URLs: choose another prefix", prefix)
	}
	return nil
}
