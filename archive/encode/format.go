// Package encode writes entries of a stream as an object and reads them again.
//
// Every format gives back the same content, so its [archive.Digest] is the same
// in all of them: the sequence number, the place in an aggregate, both keys, the
// arrival in milliseconds, and the data, byte by byte. Of an aggregate's own
// partition key, which its producer makes up, nothing is kept.
package encode

import (
	"fmt"
	"slices"
	"strings"
)

// Format is how the names of its objects end, behind the dot: a layout, and the
// compression of its bytes. It stays the same for good, because archives keep it.
type Format string

// The formats. Parquet is compressed inside, page by page.
const (
	NDJSON      Format = "ndjson"
	NDJSONGzip  Format = "ndjson.gz"
	NDJSONZstd  Format = "ndjson.zst"
	Parquet     Format = "parquet"
	ParquetGzip Format = "gz.parquet"
	ParquetZstd Format = "zst.parquet"
)

// Formats are all formats.
var Formats = []Format{NDJSON, NDJSONGzip, NDJSONZstd, Parquet, ParquetGzip, ParquetZstd}

// Parse returns the format of that name.
func Parse(name string) (Format, error) {
	if f := Format(name); slices.Contains(Formats, f) {
		return f, nil
	}
	return "", fmt.Errorf("unknown format %q: want one of %q", name, Formats)
}

// ContentType is the media type of its objects.
func (f Format) ContentType() string {
	switch layout, compression := f.split(); {
	case layout == "parquet":
		return "application/vnd.apache.parquet"
	case compression == "gz":
		return "application/gzip"
	case compression == "zst":
		return "application/zstd"
	default:
		return "application/x-ndjson"
	}
}

func (f Format) split() (layout, compression string) {
	if before, ok := strings.CutSuffix(string(f), "parquet"); ok {
		return "parquet", strings.TrimSuffix(before, ".")
	}
	layout, compression, _ = strings.Cut(string(f), ".")
	return layout, compression
}
