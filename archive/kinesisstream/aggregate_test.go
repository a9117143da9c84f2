package kinesisstream

import (
	"bytes"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/encoding/protowire"

	"github.com/pawlhq/pawl/archive"
	"github.com/pawlhq/pawl/archive/archivetest"
)

// vector was created by a Python library.
const vector = "f3899ac20a03706b310a03706b3212033132331a0908001a0568656c6c6f1a0b080110001a05776f726c64cb48b8211afb3c05f4c31852c9aff58e"

var arrived = time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)

func filled(data []byte) archive.Record {
	e := archive.Record{Number: "7", Arrival: arrived, PartitionKey: "a"}
	decodeData(&e, data)
	return e
}

func TestAggregate(t *testing.T) {
	data, err := hex.DecodeString(vector)
	if err != nil {
		t.Fatal(err)
	}
	records := []archive.UserRecord{
		{Number: "7", PartitionKey: "pk1", Arrival: arrived, Data: []byte("hello")},
		{Number: "7", Sub: 1, PartitionKey: "pk2", HashKey: "123", Arrival: arrived, Data: []byte("world")},
	}
	want := archive.Record{Number: "7", Arrival: arrived, PartitionKey: "a", UserRecords: records}
	if diff := cmp.Diff(want, filled(data)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if got := archivetest.Aggregate(records...); !bytes.Equal(got, data) {
		t.Errorf("the tests' own aggregate is\n%x, want\n%x", got, data)
	}
}

func TestPlain(t *testing.T) {
	whole := archivetest.Aggregate(archive.UserRecord{PartitionKey: "k", Data: []byte("x")})
	broken := slices.Clone(whole)
	broken[6] ^= 1
	for _, data := range [][]byte{nil, []byte("x"), []byte(aggregateMagic), whole[:4+16], whole[:len(whole)-1], whole[1:], broken} {
		want := archive.Record{Number: "7", Arrival: arrived, PartitionKey: "a", UserRecords: []archive.UserRecord{
			{Number: "7", Sub: -1, PartitionKey: "a", Arrival: arrived, Data: data},
		}}
		if diff := cmp.Diff(want, filled(data)); diff != "" {
			t.Errorf("%x (-want +got):\n%s", data, diff)
		}
	}
}

func field(n protowire.Number, b []byte) []byte {
	return protowire.AppendBytes(protowire.AppendTag(nil, n, protowire.BytesType), b)
}

func number(n protowire.Number, v uint64) []byte {
	return protowire.AppendVarint(protowire.AppendTag(nil, n, protowire.VarintType), v)
}

func TestMalformed(t *testing.T) {
	key, data := field(1, []byte("k")), field(3, nil)
	for what, message := range map[string][]byte{
		"no user records":   key,
		"key index 1 of 1":  slices.Concat(key, field(3, slices.Concat(number(1, 1), data))),
		"the key or":        slices.Concat(key, field(3, data)),
		"the data is":       slices.Concat(key, field(3, number(1, 0))),
		"not UTF-8":         slices.Concat(field(1, []byte("\xff")), field(3, slices.Concat(number(1, 0), data))),
		"unexpected EOF":    slices.Concat(key, []byte{0x1a, 9}),
		"key index 0 of 0":  slices.Concat(key, field(3, slices.Concat(number(1, 0), number(2, 0), data))),
		"user record 1: ":   slices.Concat(key, field(3, slices.Concat(number(1, 0), data)), field(3, nil)),
		"invalid field num": slices.Concat(key, []byte{0}),
		"larger than 32 MiB": slices.Concat(field(1, bytes.Repeat([]byte("k"), 1<<20)),
			bytes.Repeat(field(3, slices.Concat(number(1, 0), data)), 33)),
	} {
		raw := archivetest.WrapAggregate(message)
		e := filled(raw)
		if e.Malformed == nil || !strings.Contains(e.Malformed.Error(), what) || e.UserRecords != nil || !bytes.Equal(e.Raw, raw) {
			t.Errorf("%.100x: %.200v, want %q", raw, e, what)
		}
	}
}

func TestLaterVersions(t *testing.T) {
	tag := field(4, field(1, []byte("tag")))
	record := slices.Concat(number(9, 1), number(1, 0), tag, field(1, []byte("not a number")), field(3, []byte("x")))
	fixed := protowire.AppendFixed64(protowire.AppendTag(nil, 10, protowire.Fixed64Type), 1)
	e := filled(archivetest.WrapAggregate(slices.Concat(field(3, record), fixed, number(1, 1), field(1, []byte("k")))))
	if e.Malformed != nil || len(e.UserRecords) != 1 || e.UserRecords[0].PartitionKey != "k" || string(e.UserRecords[0].Data) != "x" {
		t.Errorf("%+v", e)
	}
}

func FuzzAggregate(f *testing.F) {
	data, err := hex.DecodeString(vector)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(data[4 : len(data)-16])
	f.Add(field(1, []byte("k")))
	f.Add(slices.Concat(number(9, 1), field(3, number(1, 0))))
	f.Fuzz(func(t *testing.T, message []byte) {
		raw := archivetest.WrapAggregate(message)
		e := filled(raw)
		switch {
		case len(message) == 0:
			if len(e.UserRecords) != 1 || e.UserRecords[0].Sub != -1 {
				t.Errorf("an empty message: %+v", e)
			}
		case e.Malformed != nil:
			if e.UserRecords != nil || !bytes.Equal(e.Raw, raw) {
				t.Errorf("malformed: %+v", e)
			}
		default:
			if diff := cmp.Diff(fmt.Sprint(e), fmt.Sprint(filled(archivetest.Aggregate(e.UserRecords...)))); diff != "" || len(e.UserRecords) == 0 {
				t.Errorf("put together again (-want +got):\n%s", diff)
			}
		}
	})
}
