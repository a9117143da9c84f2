package archive_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/pawlhq/pawl/archive"
)

func TestParseRangeRefuses(t *testing.T) {
	for _, text := range []string{"", "1", "1-", "-1", "2-1", "1-1", "01-2", "a-b", "1-2-3", "1- 2", "-1-2"} {
		if r, err := archive.ParseRange(text); err == nil {
			t.Errorf("%q is parsed as %v", text, r)
		}
	}
}

const long = archive.Number("49680483974585253461964781506959551571518065662012424194")

func TestKeys(t *testing.T) {
	minute := time.Date(2026, 2, 3, 4, 5, 0, 0, time.UTC)
	numbers := []archive.Number{"0", "9", "10", "99", "100", "12345", long, long + "0"}
	var keys []string
	for i, end := range numbers[1:] {
		n := archive.Name{Minute: minute, Shard: "shardId-000000000007", Range: archive.Range{Start: numbers[i], End: end}, Format: "ndjson.gz"}
		key := n.Key("clicks/")
		got, err := archive.ParseKey("clicks/", key)
		if err != nil || got != n {
			t.Errorf("%s is parsed as %+v, %v", key, got, err)
		}
		keys = append(keys, key)
	}
	if slices.Reverse(keys); !slices.IsSorted(keys) {
		t.Errorf("the newest does not come first: %q", keys)
	}
}

func TestNoteKeys(t *testing.T) {
	n := archive.Name{Minute: time.Unix(0, 0).UTC(), Shard: "s-1", Range: archive.Range{Start: "1", End: "12"}, Format: archive.GapFormat}
	key := n.Key("p/")
	if want := "p/1970/01/01/00/00/_s-1-99787-1-12.gap"; key != want {
		t.Errorf("the key is %s, want %s", key, want)
	}
	for _, key := range []string{key, strings.Replace(key, "_", "", 1)} {
		if got, err := archive.ParseKey("p/", key); err != nil || got != n {
			t.Errorf("%s is parsed as %+v, %v", key, got, err)
		}
	}
}

func TestParseKeyRefuses(t *testing.T) {
	good := archive.Name{Minute: time.Unix(0, 0).UTC(), Shard: "s", Range: archive.Range{Start: "1", End: "12"}, Format: "json"}.Key("p/")
	for _, key := range []string{
		"", "p/", good[1:], good + "/x", "p/1970/13/01/00/00/s-998877-1-12.json", "p/1970/01/01/00/00/s-997887-1-12",
		"p/1970/01/01/00/00/s-997999-1-12.json", "p/1970/01/01/00/00/s-997887-12-1.json", "p/1970/01/01/00/00/s-1-12.json",
		"p/1970/01/01/00/00/_s-99787-1-12.gap/x", "p/1970/01/01/00/00/__s-99787-1-13.json",
	} {
		if n, err := archive.ParseKey("p/", key); err == nil {
			t.Errorf("%q is parsed as %+v", key, n)
		}
	}
	if _, err := archive.ParseKey("p/", good); err != nil {
		t.Error(err)
	}
}
