// Package encode encodes records of a stream as objects, and decodes them.
//
// Every format preserves sequence and sub-sequence numbers, both keys, arrival in milliseconds, and
// data. Therefore the same records have the same [archive.Digest] in every format. No format
// preserves the partition key of an aggregate, which the producer library generates.
package encode

import (
	"fmt"
	"slices"
	"strings"
)

// Format is the suffix of an object's name: a layout and a compression. A format never changes,
// because archives contain objects in it.
type Format string

// The formats. Parquet compresses each page separately.
const (
	NDJSON      Format = "ndjson"
	NDJSONGzip  Format = "ndjson.gz"
	NDJSONZstd  Format = "ndjson.zst"
	Parquet     Format = "parquet"
	ParquetGzip Format = "gz.parquet"
	ParquetZstd Format = "zst.parquet"
)

// Formats lists all formats.
var Formats = []Format{NDJSON, NDJSONGzip, NDJSONZstd, Parquet, ParquetGzip, ParquetZstd}

// Parse returns the format with the given name.
func Parse(name string) (Format, error) {
	if f := Format(name); slices.Contains(Formats, f) {
		return f, nil
	}
	return "", fmt.Errorf("unknown format %q: want one of %q", name, Formats)
}

// ContentType returns the media type of the format.
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
