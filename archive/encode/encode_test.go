package encode_test

import (
	"bytes"
	"errors"
	"io"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"github.com/pawlhq/pawl/archive"
	"github.com/pawlhq/pawl/archive/encode"
)

const shard = "shardId-000000000007"

var noon = time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)

func drawRecord(t *rapid.T) archive.Record {
	number := archive.Number(rapid.StringMatching(`[1-9][0-9]{0,60}`).Draw(t, "number"))
	arrival := noon.Add(time.Duration(rapid.Int64Range(-1<<40, 1<<40).Draw(t, "arrival")) * time.Millisecond)
	drawData := rapid.OneOf(
		rapid.Custom(func(t *rapid.T) []byte { return []byte(rapid.String().Draw(t, "text")) }),
		rapid.SliceOf(rapid.Byte()),
	)
	e := archive.Record{Number: number, Arrival: arrival}
	key := rapid.String().Draw(t, "key")
	switch n := rapid.IntRange(-1, 3).Draw(t, "records"); n {
	case -1:
		e.Malformed, e.Raw, e.PartitionKey = errors.New(rapid.String().Draw(t, "why")), drawData.Draw(t, "raw"), key
	case 0:
		e.PartitionKey = key
		e.UserRecords = []archive.UserRecord{{Number: number, Sub: -1, PartitionKey: key, Arrival: arrival, Data: drawData.Draw(t, "data")}}
	default:
		for i := range n {
			e.UserRecords = append(e.UserRecords, archive.UserRecord{
				Number: number, Sub: i, PartitionKey: rapid.String().Draw(t, "own key"),
				HashKey: rapid.StringMatching(`|[0-9]{1,39}`).Draw(t, "hash"), Arrival: arrival, Data: drawData.Draw(t, "data"),
			})
		}
	}
	return e
}

func digest(records []archive.Record) string {
	d := archive.NewDigest(shard)
	for _, e := range records {
		d.Add(e)
	}
	return d.Sum()
}

func decode(r io.Reader, f encode.Format) (records []archive.Record, err error) {
	for e, err := range encode.Decode(r, f, shard) {
		if err != nil {
			return records, err
		}
		records = append(records, e)
	}
	return records, nil
}

var same = cmp.Options{cmpopts.EquateEmpty(), cmp.Comparer(func(a, b error) bool { return (a == nil) == (b == nil) })}

func TestRoundTrip(t *testing.T) {
	for _, f := range encode.Formats {
		t.Run(string(f), func(t *testing.T) {
			rapid.Check(t, func(t *rapid.T) {
				want := rapid.SliceOfN(rapid.Custom(drawRecord), 0, 5).Draw(t, "records")
				var b bytes.Buffer
				if err := encode.Encode(&b, f, shard, want); err != nil {
					t.Fatal(err)
				}
				got, err := decode(&b, f)
				if err != nil {
					t.Fatal(err)
				}
				if diff := cmp.Diff(want, got, same); diff != "" {
					t.Fatalf("(-want +got):\n%s", diff)
				}
				if digest(want) != digest(got) {
					t.Fatal("the digest has changed")
				}
			})
		})
	}
}

func example() []archive.Record {
	one := archive.UserRecord{Number: "12", Sub: -1, PartitionKey: "p<1>", Arrival: noon, Data: []byte(`{"a": "é\u0000"}`)}
	two := archive.UserRecord{Number: "13", PartitionKey: "pk1", Arrival: noon.Add(time.Millisecond), Data: []byte{0xff, 0}}
	three := archive.UserRecord{Number: "13", Sub: 1, PartitionKey: "pk2", HashKey: "123", Arrival: two.Arrival, Data: []byte("world")}
	return []archive.Record{
		{Number: "12", Arrival: noon, PartitionKey: "p<1>", UserRecords: []archive.UserRecord{one}},
		{Number: "13", Arrival: two.Arrival, UserRecords: []archive.UserRecord{two, three}},
		{Number: "14", Arrival: noon, PartitionKey: "a", Malformed: errors.New("cut off"), Raw: []byte("raw")},
	}
}

// Other programs read the layouts.
func TestText(t *testing.T) {
	for f, want := range map[encode.Format]string{
		encode.NDJSON: `{"shard_id":"shardId-000000000007","sequence_number":"12","partition_key":"p<1>","arrival":"2026-01-02T12:00:00.000Z","data":"{\"a\": \"é\\u0000\"}"}
{"shard_id":"shardId-000000000007","sequence_number":"13","sub_sequence_number":0,"partition_key":"pk1","arrival":"2026-01-02T12:00:00.001Z","data_base64":"/wA="}
{"shard_id":"shardId-000000000007","sequence_number":"13","sub_sequence_number":1,"partition_key":"pk2","explicit_hash_key":"123","arrival":"2026-01-02T12:00:00.001Z","data":"world"}
{"shard_id":"shardId-000000000007","sequence_number":"14","partition_key":"a","arrival":"2026-01-02T12:00:00.000Z","data":"raw","malformed":"cut off"}
`,
	} {
		var b strings.Builder
		if err := encode.Encode(&b, f, shard, example()); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, b.String()); diff != "" {
			t.Errorf("%s (-want +got):\n%s", f, diff)
		}
	}
}

// Archives store the digest.
func TestDigest(t *testing.T) {
	const want = "02cad735cecb574045e8db60d7683198a8f35777963ffce5dd20841e3c1b8b96"
	if got := digest(example()); got != want {
		t.Errorf("the digest of the example is %s, want %s", got, want)
	}
}

func TestDigestCovers(t *testing.T) {
	seen := map[string]string{digest(example()): "nothing"}
	for what, change := range map[string]func(e []archive.Record) []archive.Record{
		"number":   func(e []archive.Record) []archive.Record { e[0].UserRecords[0].Number = "11"; return e },
		"place":    func(e []archive.Record) []archive.Record { e[0].UserRecords[0].Sub = 0; return e },
		"key":      func(e []archive.Record) []archive.Record { e[0].UserRecords[0].PartitionKey = ""; return e },
		"hash key": func(e []archive.Record) []archive.Record { e[0].UserRecords[0].HashKey = "1"; return e },
		"arrival": func(e []archive.Record) []archive.Record {
			e[0].UserRecords[0].Arrival = noon.Add(time.Millisecond)
			return e
		},
		"data": func(e []archive.Record) []archive.Record { e[0].UserRecords[0].Data = nil; return e },
		"raw":  func(e []archive.Record) []archive.Record { e[2].Raw = nil; return e },
		"malformed": func(e []archive.Record) []archive.Record {
			e[2].Malformed = nil
			e[2].UserRecords = []archive.UserRecord{{Number: "14", Sub: -1, PartitionKey: "a", Arrival: noon, Data: []byte("raw")}}
			return e
		},
		"end":   func(e []archive.Record) []archive.Record { return e[:2] },
		"order": func(e []archive.Record) []archive.Record { e[0], e[1] = e[1], e[0]; return e },
	} {
		sum := digest(change(example()))
		if before, known := seen[sum]; known {
			t.Errorf("%s and %s have the same digest", what, before)
		}
		seen[sum] = what
	}
	reason := example()
	reason[2].Malformed = errors.New("in other words")
	if digest(reason) != digest(example()) {
		t.Error("the digest covers the reason of a malformed entry")
	}
}

func TestEncodeRejects(t *testing.T) {
	for what, change := range map[string]func(e []archive.Record){
		"another number":   func(e []archive.Record) { e[1].UserRecords[1].Number = "14" },
		"another arrival":  func(e []archive.Record) { e[1].UserRecords[1].Arrival = noon.Add(time.Hour) },
		"a wrong place":    func(e []archive.Record) { e[1].UserRecords[1].Sub = 2 },
		"two without":      func(e []archive.Record) { e[1].UserRecords[0].Sub = -1 },
		"no record":        func(e []archive.Record) { e[0].UserRecords = nil },
		"no number":        func(e []archive.Record) { e[2].Number = "" },
		"a leading zero":   func(e []archive.Record) { e[2].Number = "014" },
		"a letter":         func(e []archive.Record) { e[2].Number = "14a" },
		"a broken key":     func(e []archive.Record) { e[1].UserRecords[0].PartitionKey = "\xff" },
		"a far-off future": func(e []archive.Record) { e[2].Arrival = noon.AddDate(9000, 0, 0) },
	} {
		for _, f := range []encode.Format{encode.NDJSON, encode.NDJSONGzip, encode.ParquetZstd} {
			e := example()
			change(e)
			if err := encode.Encode(io.Discard, f, shard, e); err == nil {
				t.Errorf("%s: %s is written", f, what)
			}
		}
	}
}

func TestDamaged(t *testing.T) {
	want := digest(example())
	for _, f := range encode.Formats {
		var b bytes.Buffer
		if err := encode.Encode(&b, f, shard, example()); err != nil {
			t.Fatal(err)
		}
		for i := range b.Len() {
			got, err := decode(bytes.NewReader(b.Bytes()[:i]), f)
			if err == nil && digest(got) == want && i < b.Len()-1 { // the final line feed is optional
				t.Errorf("%s: the first %d of %d bytes are taken for the whole", f, i, b.Len())
			}
			if err != nil && !errors.Is(err, encode.ErrDamaged) {
				t.Errorf("%s: %v", f, err)
			}
		}
		for i := range b.Bytes() {
			changed := bytes.Clone(b.Bytes())
			changed[i] ^= 0x10
			if _, err := decode(bytes.NewReader(changed), f); err == nil && strings.HasSuffix(string(f), "parquet") {
				t.Errorf("%s: decode did not detect that byte %d of %d was changed", f, i, b.Len())
			}
		}
	}
}

func TestReadErrorIsNotDamage(t *testing.T) {
	broken := errors.New("connection reset")
	for _, f := range encode.Formats {
		var b bytes.Buffer
		if err := encode.Encode(&b, f, shard, example()); err != nil {
			t.Fatal(err)
		}
		for _, n := range []int64{0, 1, int64(b.Len()) / 2, int64(b.Len()) - 1} {
			_, err := decode(io.MultiReader(io.LimitReader(bytes.NewReader(b.Bytes()), n), iotest.ErrReader(broken)), f)
			if !errors.Is(err, broken) || errors.Is(err, encode.ErrDamaged) {
				t.Errorf("%s, broken after %d bytes: %v", f, n, err)
			}
		}
	}
}

func TestDamagedRows(t *testing.T) {
	const row = `{"shard_id":"shardId-000000000007","partition_key":"k","arrival":"2026-01-02T12:00:00.000Z",`
	for text, want := range map[string]string{
		row + `"sequence_number":"1","data":"","x":1}`:                             "unknown object member",
		row + `"sequence_number":"1"}`:                                             "data or data_base64",
		row + `"sequence_number":"1","data":"","data_base64":""}`:                  "data or data_base64",
		row + `"sequence_number":"01","data":""}`:                                  "not a sequence number",
		row + `"sequence_number":"1","data":"","sub_sequence_number":1}`:           "does not follow",
		row + `"sequence_number":"1","data":"","sub_sequence_number":-2}`:          "sub-sequence number -2",
		strings.Replace(row, "07", "08", 1) + `"sequence_number":"1","data":"\n"}`: "belongs to shard",
		"null":  "parsing time",
		`{} {}`: "parsing time",
		strings.Replace(row, "Z", "+01:00", 1) + `"sequence_number":"1","data":""}`: "parsing time",
		`{"data":"` + strings.Repeat("x", 65<<20) + `"}`:                            "larger than",
	} {
		if _, err := decode(strings.NewReader(text), encode.NDJSON); !errors.Is(err, encode.ErrDamaged) || !strings.Contains(err.Error(), want) {
			t.Errorf("%.200s: %v, want %q", text, err, want)
		}
	}
}

func TestFormats(t *testing.T) {
	types := map[encode.Format]string{
		encode.NDJSON: "application/x-ndjson", encode.Parquet: "application/vnd.apache.parquet",
		encode.NDJSONGzip: "application/gzip", encode.ParquetGzip: "application/vnd.apache.parquet",
		encode.NDJSONZstd: "application/zstd", encode.ParquetZstd: "application/vnd.apache.parquet",
	}
	for _, f := range encode.Formats {
		got, err := encode.Parse(string(f))
		if err != nil || got != f || f.ContentType() != types[f] {
			t.Errorf("Parse(%q) = %q, %v, of type %s", f, got, err, f.ContentType())
		}
	}
	_, unknown := encode.Parse("csv")
	_, read := decode(strings.NewReader("[]"), "csv")
	for what, err := range map[string]error{"Parse": unknown, "Encode": encode.Encode(io.Discard, "csv", shard, nil), "Decode": read} {
		if err == nil || !strings.Contains(err.Error(), `unknown format "csv"`) {
			t.Errorf("%s of csv: %v", what, err)
		}
	}
}

func FuzzDecode(f *testing.F) {
	for i, format := range encode.Formats {
		var b bytes.Buffer
		if err := encode.Encode(&b, format, shard, example()); err != nil {
			f.Fatal(err)
		}
		f.Add(byte(i), b.Bytes())
	}
	f.Fuzz(func(t *testing.T, i byte, b []byte) {
		format := encode.Formats[int(i)%len(encode.Formats)]
		records, err := decode(bytes.NewReader(b), format)
		if err != nil {
			if !errors.Is(err, encode.ErrDamaged) {
				t.Errorf("%v, want ErrDamaged", err)
			}
			return
		}
		var again bytes.Buffer
		if err := encode.Encode(&again, format, shard, records); err != nil {
			t.Fatalf("the decoded records cannot be encoded: %v", err)
		}
		back, err := decode(&again, format)
		if err != nil || digest(back) != digest(records) {
			t.Errorf("decoded again: %v, or the content differs", err)
		}
	})
}
