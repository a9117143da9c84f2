package files

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/pawlhq/pawl/store"
)

// ProbeFolder is the folder below the prefix in which a store is proved to be fit. Audits
// pass over it.
const ProbeFolder = ".pawl-doctor/"

// State says where a file is in its life. Only Indexed files are visible.
type State uint8

// The states. Their numbers are stored.
const (
	Pending State = iota + 1 // its bytes may be on their way
	Indexed                  // visible: the bucket holds what was promised
	Lost                     // was indexed, and the bucket does not hold it any more
	Deleted                  // by its user, who may undelete it for a while
	Purging                  // its object is being removed
	Gone                     // its object was removed: the row is a tombstone
	Expired                  // its bytes never came: the row is a tombstone
)

var stateNames = [...]string{"", "pending", "indexed", "lost", "deleted", "purging", "gone", "expired"}

// String returns the state's name.
func (s State) String() string { return stateNames[s] }

// ParseState reads what String writes.
func ParseState(name string) (State, error) {
	for i, n := range stateNames[1:] {
		if n == name {
			return State(i + 1), nil
		}
	}
	return 0, fmt.Errorf("unknown file state %q", name)
}

// Nonce is fresh random bytes at every write of a row.
type Nonce = store.Nonce

// Promise is what the user says of a file before it is uploaded. The store refuses
// an upload that is another.
type Promise struct {
	Size        int64 // in bytes
	ContentType string
	// SHA256 is that of the bytes; of a file in parts it is that of the SHA-256s of
	// its parts, one after the other.
	SHA256 [32]byte
	// PartSize is how many bytes each part has but the last; 0: the file is uploaded
	// in one piece.
	PartSize int64 `json:",omitzero"`
}

// Parts is how many parts a file has; 0: it is uploaded in one piece.
func (p *Promise) Parts() int {
	if p.PartSize == 0 {
		return 0
	}
	return int((p.Size + p.PartSize - 1) / p.PartSize)
}

// File is a row of the index.
type File struct {
	ID     string // never used again
	Entity string // whom it belongs to
	Key    string // of its object; no other file ever has it
	Promise
	// Idempotency is the key of the request that began the file; empty: none.
	Idempotency string
	// UploadID is the store's name of the upload in parts that the file's URLs are of.
	UploadID string `json:",omitzero"`

	State      State
	WasPending bool      // of a Deleted file: its bytes had not come
	PutBy      time.Time // until when its URL lets an upload begin
	LandBy     time.Time // until when an upload may land, by the store's clock
	DeletedAt  time.Time
	DropAt     time.Time // when the tombstone may go
	DueAt      time.Time // when to look, whatever is heard; zero: never

	CreatedAt time.Time
	UpdatedAt time.Time
	Nonce     Nonce

	unknown string // what a newer version of Pawl has written; JSON
}

// Deletable reports whether the file's user can delete it.
func (f *File) Deletable() bool {
	return f.State == Pending || f.State == Indexed || f.State == Lost
}

// MinCharge is the number of bytes that a file counts against the quota at least. Rows and
// objects cost something even if the file is empty.
const MinCharge = 4 << 10

// Usage is what an entity's files take up.
type Usage struct {
	Bytes int64 // that count against the quota
	Open  int64 // uploads whose URLs may still be in use
}

// Usage returns what the file adds to its entity's usage. A file counts until its bytes
// are gone from the bucket, so a deleted file counts until it is purged.
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

// Times are the spans that the transitions go by.
type Times struct {
	URL      time.Duration // how long an upload's URL lives
	Parts    time.Duration // how long the URLs of an upload in parts live
	Upload   time.Duration // how long the longest request takes that uploads, by the store's rules
	Undelete time.Duration // how long a deleted file can be had back
	Delay    time.Duration // how late a notification may be
	Skew     time.Duration // how far the clocks of services may be apart
}

// DefaultTimes returns the defaults. MinIO forgets an upload in parts after a day, so
// that their URLs live for less.
func DefaultTimes() Times {
	return Times{URL: 15 * time.Minute, Parts: 12 * time.Hour, Upload: time.Hour, Undelete: 24 * time.Hour, Delay: 24 * time.Hour, Skew: 15 * time.Minute}
}

// tombstoneRetention is how long a tombstone outlives the last moment that an upload may land.
// The day is for idempotency keys, which end with it.
func (t *Times) tombstoneRetention() time.Duration { return max(t.Delay+t.Skew, 24*time.Hour) }

// Check refuses times under which a file could come back.
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

// ObjectInfo is what one HEAD of an object has shown.
type ObjectInfo struct {
	Found  bool
	Size   int64
	SHA256 [32]byte  // zero: the store knows none
	Parts  int       // that SHA256 is made of; 0: it is that of the bytes
	Date   time.Time // of the answer, by the store's clock
	// Entity and ContentType are what the upload said.
	Entity, ContentType string
}

// matches reports that the object is what was promised.
func (f *File) matches(s ObjectInfo) bool {
	return s.Found && s.Size == f.Size && s.SHA256 == f.SHA256 && s.Parts == f.Parts()
}

// CheckPrefix returns an error for a prefix of keys that cannot be part of a URL.
func CheckPrefix(prefix string) error {
	if strings.ContainsAny(prefix, "%?#") {
		return fmt.Errorf("prefix %q contains %%, ? or #, which clients and proxies interpret in URLs: choose another prefix", prefix)
	}
	return nil
}
