package encode

import (
	"slices"
	"strings"
	"testing"

	"github.com/parquet-go/parquet-go"
)

func TestPanicIsAnError(t *testing.T) {
	err := func() (err error) {
		defer recoverPanic(&err)
		panic("index out of range")
	}()
	if err == nil || !strings.Contains(err.Error(), "index out of range") {
		t.Errorf("%v, want the library's error", err)
	}
}

func TestForeignParquetIsRejected(t *testing.T) {
	var b strings.Builder
	w := parquet.NewGenericWriter[struct{ X int }](&b)
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	if verifyChecksum([]byte(b.String())) {
		t.Error("a file without a checksum was accepted")
	}
	for _, end := range []string{"", "PAR1", "pawl-sha256PAR1PAR1", "pawl-sha256\xff\xff\xff\xffPAR1"} {
		if verifyChecksum(slices.Concat([]byte("PAR1"), []byte(end))) {
			t.Errorf("%q is believed", end)
		}
	}
}
