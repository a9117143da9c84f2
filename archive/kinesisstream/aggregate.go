package kinesisstream

import (
	"bytes"
	"crypto/md5" // the format uses it as a checksum
	"errors"
	"fmt"
	"unicode/utf8"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/pawlhq/pawl/archive"
)

// aggregateMagic begins an aggregate of the Kinesis Producer Library. A protobuf message and its
// MD5 follow.
const aggregateMagic = "\xf3\x89\x9a\xc2"

// decodeData treats data with the magic but a wrong MD5 as a single user record, like the Kinesis
// Client Library. A message with a correct MD5 that cannot be parsed is malformed.
func decodeData(e *archive.Record, data []byte) {
	message, ok := aggregate(data)
	if !ok {
		e.UserRecords = []archive.UserRecord{{Number: e.Number, Sub: -1, PartitionKey: e.PartitionKey, Arrival: e.Arrival, Data: data}}
		return
	}
	records, err := split(message)
	if err != nil {
		e.Malformed, e.Raw = fmt.Errorf("aggregate: %w", err), data
		return
	}
	for i := range records {
		records[i].Number, records[i].Sub, records[i].Arrival = e.Number, i, e.Arrival
	}
	e.UserRecords = records
}

func aggregate(data []byte) (message []byte, ok bool) {
	rest, ok := bytes.CutPrefix(data, []byte(aggregateMagic))
	if !ok || len(rest) <= md5.Size {
		return nil, false
	}
	message, sum := rest[:len(rest)-md5.Size], rest[len(rest)-md5.Size:]
	want := md5.Sum(message)
	return message, bytes.Equal(sum, want[:])
}

const (
	fieldPartitionKeys = 1
	fieldHashKeys      = 2
	fieldRecords       = 3

	fieldPartitionKey = 1 // index into the partition keys
	fieldHashKey      = 2 // index into the hash keys
	fieldData         = 3
)

// split returns user records that share the message's memory.
func split(message []byte) ([]archive.UserRecord, error) {
	var partitionKeys, hashKeys []string
	var parts [][]byte
	err := fields(message, func(field protowire.Number, _ uint64, b []byte) error {
		switch {
		case b == nil:
		case field == fieldRecords:
			parts = append(parts, b)
		case field != fieldPartitionKeys && field != fieldHashKeys:
		case !utf8.Valid(b):
			return errors.New("a key is not UTF-8")
		case field == fieldPartitionKeys:
			partitionKeys = append(partitionKeys, string(b))
		default:
			hashKeys = append(hashKeys, string(b))
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	if len(parts) == 0 {
		return nil, errors.New("no user records")
	}
	records, size := make([]archive.UserRecord, len(parts)), 0
	for i, part := range parts {
		if records[i], err = splitRecord(part, partitionKeys, hashKeys); err != nil {
			return nil, fmt.Errorf("user record %d: %w", i, err)
		}
		r := &records[i]
		if size += len(r.Data) + len(r.PartitionKey) + len(r.HashKey); size > maxSplit {
			return nil, fmt.Errorf("its user records are larger than %d MiB in total, because they share long keys", maxSplit>>20)
		}
	}
	return records, nil
}

// maxSplit bounds the bytes of an aggregate's user records. They share the keys in the aggregate,
// but the archive stores a copy for each.
const maxSplit = 32 << 20

func splitRecord(part []byte, partitionKeys, hashKeys []string) (r archive.UserRecord, err error) {
	var keyed, filled bool
	err = fields(part, func(field protowire.Number, v uint64, b []byte) (err error) {
		switch {
		case field == fieldPartitionKey && b == nil:
			r.PartitionKey, err = at(partitionKeys, v)
			keyed = true
		case field == fieldHashKey && b == nil:
			r.HashKey, err = at(hashKeys, v)
		case field == fieldData && b != nil:
			r.Data, filled = b, true
		}
		return err
	})
	if err == nil && (!keyed || !filled) {
		err = errors.New("the key or the data is missing")
	}
	return r, err
}

func at(keys []string, i uint64) (string, error) {
	if i >= uint64(len(keys)) {
		return "", fmt.Errorf("key index %d of %d keys", i, len(keys))
	}
	return keys[i], nil
}

// fields skips fields of other types, which later versions may have.
func fields(message []byte, f func(field protowire.Number, v uint64, b []byte) error) error {
	for len(message) > 0 {
		field, kind, n := protowire.ConsumeTag(message)
		if n < 0 {
			return protowire.ParseError(n)
		}
		message = message[n:]
		var err error
		switch kind {
		case protowire.VarintType:
			var v uint64
			if v, n = protowire.ConsumeVarint(message); n >= 0 {
				err = f(field, v, nil)
			}
		case protowire.BytesType:
			var b []byte
			if b, n = protowire.ConsumeBytes(message); n >= 0 {
				err = f(field, 0, b[:len(b):len(b)])
			}
		default:
			n = protowire.ConsumeFieldValue(field, kind, message)
		}
		if n < 0 {
			return protowire.ParseError(n)
		}
		if err != nil {
			return err
		}
		message = message[n:]
	}
	return nil
}
