package files

import (
	"testing"

	"github.com/pawlhq/pawl/internal/format/formattest"
	"github.com/pawlhq/pawl/store"
)

func TestFormatsOfReleases(t *testing.T) {
	record := func(body string) *store.Record {
		return &store.Record{Key: fileKey("01890a5d-ac96-774b-bcce-b302099a8057"), Body: body}
	}
	formattest.Check(t, "files-[ef]*", func(_ *testing.T, body string) (string, error) {
		f, err := decodeFile(record(body))
		if err != nil {
			return "", err
		}
		return encodeFile(&f)
	})
	formattest.Check(t, "files-quota", func(_ *testing.T, body string) (string, error) {
		s := &sender{}
		if err := s.setUsage(record(body)); err != nil {
			return "", err
		}
		c, err := s.usageChange(nil)
		if err != nil {
			return "", err
		}
		return c.Next.Body, nil
	})
}
