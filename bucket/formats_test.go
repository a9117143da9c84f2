package bucket

import (
	"strconv"
	"testing"

	"github.com/pawlhq/pawl/internal/format/formattest"
)

func TestFormatsOfReleases(t *testing.T) {
	formattest.CheckMetadata(t, "metadata-output", func(m map[string]string) map[string]string {
		fence, _ := strconv.ParseInt(m["pawl-fence"], 10, 64)
		size, _ := strconv.ParseInt(m["pawl-size"], 10, 64)
		return Stamp{m["pawl-pipeline"], m["pawl-object"], m["pawl-source"], fence, m["pawl-nonce"]}.metadata(size)
	})
}
