package archive

import (
	"testing"
	"time"

	"github.com/pawlhq/pawl/bucket/membucket"
	"github.com/pawlhq/pawl/internal/format/formattest"
	"github.com/pawlhq/pawl/ledger"
	"github.com/pawlhq/pawl/store/memory"
)

func TestFormatsOfReleases(t *testing.T) {
	formattest.Check(t, "archive-claim", func(t *testing.T, body string) (string, error) {
		a := &Archive{Config: Config{Bucket: "b", Store: membucket.New(time.Now, []string{"b"})}}
		if _, err := a.claimCell().Write(t.Context(), "", []byte(body)); err != nil {
			t.Fatal(err)
		}
		c, _, err := a.readClaim(t.Context())
		return string(encodeJSON(c)), err
	})
	formattest.Check(t, "archive-marker", func(t *testing.T, body string) (string, error) {
		a := &Archive{Config: Config{Name: "clicks", Registers: ledger.NewRows(memory.New())}}
		if _, err := a.markerCell().Write(t.Context(), "", []byte(body)); err != nil {
			t.Fatal(err)
		}
		m, _, err := a.readMarker(t.Context())
		return string(encodeJSON(m)), err
	})
	formattest.Check(t, "archive-shard-*", func(_ *testing.T, body string) (string, error) {
		p, err := decodeProgress([]byte(body))
		return string(encodeJSON(p)), err
	})
	formattest.CheckRegister[heartbeat](t, "archive-heartbeat")
}
