package dynamo

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"hash/fnv"
	"strconv"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/pawlhq/pawl/store"
)

const (
	attrPart  = "p" // hash key, a string: the escaped space, "#" and the shard
	attrSort  = "s" // range key, binary: see sortKey
	attrName  = "l" // the complete name, if sortKey truncates it
	attrNonce = "n" // binary, 16 bytes
	attrBody  = "b" // a string
	attrDue   = "d" // range key of the index, binary: see dueKey; absent: no due time
)

const (
	// A range key has at most 1,024 bytes. In the index it also contains eight bytes for the time,
	// one for the point, and 32 for the hash.
	maxSortName = 980
	// maxPartSpace is the maximum size of an escaped space in a hash key, in bytes.
	maxPartSpace = 1800
)

func escape(space string) string {
	var b strings.Builder
	for i := range len(space) {
		switch c := space[i]; {
		case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', '0' <= c && c <= '9', strings.IndexByte("/-_.", c) >= 0:
			b.WriteByte(c)
		default:
			fmt.Fprintf(&b, "%%%02X", c)
		}
	}
	if b.Len() <= maxPartSpace {
		return b.String()
	}
	hash := sha256.Sum256([]byte(space))
	return b.String()[:maxPartSpace] + "~" + hex.EncodeToString(hash[:])
}

func part(space string, shard int) string { return escape(space) + "#" + strconv.Itoa(shard) }

func (s *Store) shards(space string) int {
	for prefix, n := range s.shardCounts {
		if space == prefix || strings.HasSuffix(prefix, "/") && strings.HasPrefix(space, prefix) {
			return n
		}
	}
	return 1
}

func (s *Store) shard(k store.Key) int {
	n := s.shards(k.Space)
	if n == 1 {
		return 0
	}
	h := fnv.New32a()
	_, _ = h.Write([]byte(k.Name)) // never fails
	return int(h.Sum32() % uint32(n))
}

// A longer name than [maxSortName] is truncated and its hash appended, so only long names with the
// same beginning are out of order.
func sortKey(name string) []byte {
	if len(name) <= maxSortName {
		return []byte("." + name)
	}
	hash := sha256.Sum256([]byte(name))
	return append([]byte("."+name[:maxSortName]), hash[:]...)
}

// firstKey and lastKey enclose the range keys of all names with the same beginning.
func firstKey(name string) []byte { return []byte("." + name[:min(len(name), maxSortName)]) }

func lastKey(name string) []byte {
	if len(name) <= maxSortName {
		return []byte("." + name)
	}
	return append(firstKey(name), strings.Repeat("\xff", sha256.Size)...)
}

func dueKey(due time.Time, sort []byte) []byte {
	const sign = 1 << 63
	return append(binary.BigEndian.AppendUint64(nil, uint64(due.UnixMilli())^sign), sort...)
}

func dueOf(key []byte) (time.Time, bool) {
	if len(key) < 8 {
		return time.Time{}, false
	}
	const sign = 1 << 63
	return time.UnixMilli(int64(binary.BigEndian.Uint64(key) ^ sign)).UTC(), true
}

type item = map[string]types.AttributeValue

func text(v string) types.AttributeValue  { return &types.AttributeValueMemberS{Value: v} }
func bytes(v []byte) types.AttributeValue { return &types.AttributeValueMemberB{Value: v} }

func bytesOf(i item, name string) []byte {
	if v, ok := i[name].(*types.AttributeValueMemberB); ok {
		return v.Value
	}
	return nil
}

func textOf(i item, name string) string {
	if v, ok := i[name].(*types.AttributeValueMemberS); ok {
		return v.Value
	}
	return ""
}

func (s *Store) key(k store.Key) item {
	return item{attrPart: text(part(k.Space, s.shard(k))), attrSort: bytes(sortKey(k.Name))}
}

func (s *Store) item(r *store.Record) item {
	i := s.key(r.Key)
	i[attrNonce], i[attrBody] = bytes(r.Nonce[:]), text(r.Body)
	if len(r.Name) > maxSortName {
		i[attrName] = bytes([]byte(r.Name))
	}
	if !r.Due.IsZero() {
		i[attrDue] = bytes(dueKey(r.Due, sortKey(r.Name)))
	}
	return i
}

func (s *Store) record(space string, i item) (store.Record, error) {
	sort, nonce := bytesOf(i, attrSort), bytesOf(i, attrNonce)
	body, hasBody := i[attrBody].(*types.AttributeValueMemberS)
	r := store.Record{Key: store.Key{Space: space, Name: string(bytesOf(i, attrName))}}
	if r.Name == "" && len(sort) > 0 {
		r.Name = string(sort[1:])
	}
	dueOK := true
	if key, has := i[attrDue]; has && key != nil {
		r.Due, dueOK = dueOf(bytesOf(i, attrDue))
	}
	if r.Name == "" || string(sortKey(r.Name)) != string(sort) || len(nonce) != len(r.Nonce) || !hasBody || !dueOK {
		return r, s.unusable(fmt.Sprintf("has an item that Pawl did not write, with the key %s %q: remove it", textOf(i, attrPart), sort), nil)
	}
	r.Nonce, r.Body = store.Nonce(nonce), body.Value
	return r, nil
}

func names(all ...string) map[string]string {
	m := make(map[string]string, len(all))
	for _, n := range all {
		m["#"+n] = n
	}
	return m
}

func (s *Store) tableName() *string { return aws.String(s.table) }
