package archive

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"hash"
)

// digestVersion is a prefix of the hashed data. Change the version when you change the fields that
// a digest covers.
const digestVersion = "pawl-archive-1"

// malformedSub replaces the sub-sequence number in the digest of a malformed record.
const malformedSub = -2

// Digest computes a digest of records. It is independent of the encoding, which may change with the
// version of a compressor.
type Digest struct {
	h   hash.Hash
	buf []byte
}

// NewDigest returns a digest for records of a shard.
func NewDigest(shard string) *Digest {
	d := &Digest{h: sha256.New()}
	d.buf = appendBytes(appendBytes(nil, digestVersion), shard)
	return d
}

// Add adds the next record. The digest covers number, Sub, both keys, arrival in milliseconds and
// data of each user record. For a malformed record it covers number, key, arrival and Raw.
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

// Sum returns the digest in hex. Do not call Add after Sum.
func (d *Digest) Sum() string {
	d.h.Write(d.buf)
	return hex.EncodeToString(d.h.Sum(nil))
}

// appendBytes adds the length, so that different lists of fields have different encodings.
func appendBytes[T ~string | ~[]byte](b []byte, field T) []byte {
	return append(binary.BigEndian.AppendUint64(b, uint64(len(field))), field...)
}
