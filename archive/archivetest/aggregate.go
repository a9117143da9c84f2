package archivetest

import (
	"crypto/md5" // part of the format
	"slices"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/pawlhq/pawl/archive"
)

// Aggregate encodes records like the Kinesis Producer Library.
func Aggregate(records ...archive.UserRecord) []byte {
	var message, parts []byte
	var keys, hashKeys []string
	for _, r := range records {
		part := protowire.AppendTag(nil, 1, protowire.VarintType)
		part = protowire.AppendVarint(part, index(&keys, r.PartitionKey))
		if r.HashKey != "" {
			part = protowire.AppendTag(part, 2, protowire.VarintType)
			part = protowire.AppendVarint(part, index(&hashKeys, r.HashKey))
		}
		part = protowire.AppendBytes(protowire.AppendTag(part, 3, protowire.BytesType), r.Data)
		parts = protowire.AppendBytes(protowire.AppendTag(parts, 3, protowire.BytesType), part)
	}
	for i, table := range [][]string{keys, hashKeys} {
		for _, key := range table {
			message = protowire.AppendString(protowire.AppendTag(message, protowire.Number(i+1), protowire.BytesType), key)
		}
	}
	return WrapAggregate(append(message, parts...))
}

// WrapAggregate adds the magic bytes and the checksum to a message.
func WrapAggregate(message []byte) []byte {
	sum := md5.Sum(message)
	return slices.Concat([]byte("\xf3\x89\x9a\xc2"), message, sum[:])
}

func index(table *[]string, key string) uint64 {
	if i := slices.Index(*table, key); i >= 0 {
		return uint64(i)
	}
	*table = append(*table, key)
	return uint64(len(*table) - 1)
}
