package archive

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"hash"
)

// digestVersion begins each digest. It changes with what a digest covers.
const digestVersion = "pawl-archive-1"

// malformedSub takes the place of Sub for the bytes of a malformed entry.
const malformedSub = -2

// A Digest sums up records and says nothing of the bytes that they are stored
// in: those of a compressor, or of a Parquet writer, change with its version.
type Digest struct {
	h   hash.Hash
	buf []byte
}

// NewDigest begins the digest of entries of a shard.
func NewDigest(shard string) *Digest {
	d := &Digest{h: sha256.New()}
	d.buf = appendBytes(appendBytes(nil, digestVersion), shard)
	return d
}

// Add adds the next entry. Of each record it covers the number, Sub, both keys,
// the arrival in milliseconds, and the data; of a malformed entry its number, key
// and arrival, and Raw, but not what is wrong with it.
func (d *Digest) Add(e Record) {
	if e.Malformed != nil {
		d.add(UserRecord{Number: e.Number, Sub: malformedSub, PartitionKey: e.PartitionKey, Arrival: e.Arrival, Data: e.Raw})
	}
	for _, r := range e.UserRecords {
		d.add(r)
	}
}

func (d *Digest) add(r UserRecord) {
	b := appendBytes(d.buf, r.Number)
	b = binary.BigEndian.AppendUint64(b, uint64(r.Sub))
	b = appendBytes(b, r.PartitionKey)
	b = appendBytes(b, r.HashKey)
	b = binary.BigEndian.AppendUint64(b, uint64(r.Arrival.UnixMilli()))
	b = appendBytes(b, r.Data)
	d.h.Write(b)
	d.buf = b[:0]
}

// Sum returns the digest in hex. No entry can be added after it.
func (d *Digest) Sum() string {
	d.h.Write(d.buf)
	return hex.EncodeToString(d.h.Sum(nil))
}

// appendBytes appends the length and the bytes, so that no two lists of fields
// come to the same.
func appendBytes[T ~string | ~[]byte](b []byte, field T) []byte {
	return append(binary.BigEndian.AppendUint64(b, uint64(len(field))), field...)
}
