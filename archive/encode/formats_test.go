package encode_test

import (
	"bytes"
	"embed"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pawlhq/pawl/archive"
	"github.com/pawlhq/pawl/archive/encode"
)

// The folders have the records of releasedRecords, as the releases wrote them.
//
//go:embed testdata/releases
var releases embed.FS

var releasedRecords = []archive.Record{
	{Number: "100", Arrival: noon, PartitionKey: "a", UserRecords: []archive.UserRecord{{Number: "100", Sub: -1, PartitionKey: "a", Arrival: noon, Data: []byte("text")}}},
	{Number: "200", Arrival: noon, UserRecords: []archive.UserRecord{
		{Number: "200", Sub: 0, PartitionKey: "b", HashKey: "7", Arrival: noon, Data: []byte{0xff, 0}},
		{Number: "200", Sub: 1, PartitionKey: "c", Arrival: noon, Data: []byte("")},
	}},
	{Number: "300", Arrival: noon, PartitionKey: "d", Malformed: errors.New("not an aggregate"), Raw: []byte{1, 2}},
}

func TestFormatsOfReleases(t *testing.T) {
	for _, f := range encode.Formats {
		body, err := releases.ReadFile("testdata/releases/0.1/object." + string(f))
		if err != nil {
			t.Fatal(err)
		}
		got, err := decode(bytes.NewReader(body), f)
		if err != nil {
			t.Errorf("%s: %v", f, err)
		}
		if diff := cmp.Diff(releasedRecords, got, same); diff != "" {
			t.Errorf("%s: -want +got\n%s", f, diff)
		}
		var now bytes.Buffer
		if err := encode.Encode(&now, f, shard, releasedRecords); err != nil {
			t.Fatal(err)
		}
		if f == encode.NDJSON && now.String() != string(body) { // compression may change
			t.Errorf("wrote %s, want %s", &now, body)
		}
	}
}
