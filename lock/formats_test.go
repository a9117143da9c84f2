package lock

import (
	"testing"
	"time"

	"github.com/pawlhq/pawl/internal/format/formattest"
)

func TestFormatsOfReleases(t *testing.T) {
	formattest.Check(t, "lock-*", func(t *testing.T, body string) (string, error) {
		r, err := decode([]byte(body))
		if err != nil {
			return "", err
		}
		for _, next := range []Record{r.acquired(&Record{TTL: r.TTL}, "next", time.Now()), r.renewed("next"), r.forced("next", time.Now())} {
			if string(next.unknown) != string(r.unknown) {
				t.Errorf("%s became %s", r.unknown, next.unknown)
			}
		}
		return string(r.encode()), nil
	})
	formattest.CheckMetadata(t, "metadata-update", func(m map[string]string) map[string]string {
		now, _ := lineageOf(m).metadata(m)
		return now
	})
}
