package ledger_test

import (
	"testing"

	"github.com/pawlhq/pawl/internal/format/formattest"
	"github.com/pawlhq/pawl/ledger"
)

func TestFormatsOfReleases(t *testing.T) {
	formattest.Check(t, "row-*", func(_ *testing.T, body string) (string, error) {
		row := ledger.Decode(ledger.RowKey{Pipeline: "p", Bucket: "b", Key: "k"}, ledger.Nonce{}, body)
		if row.Unreadable != nil {
			return "", row.Unreadable
		}
		return ledger.Encode(&row)
	})
}
