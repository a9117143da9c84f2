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

// Format is a layout, and the compression of its bytes behind a plus:
// "ndjson+gzip". The name stays the same for good: archives keep it.
type Format string

// The formats. Parquet is compressed inside, column by column.
const (
	NDJSON      Format = "ndjson"
	NDJSONGzip  Format = "ndjson+gzip"
	NDJSONZstd  Format = "ndjson+zstd"
	JSON        Format = "json" // an array, as System.Text.Json writes the records of the .NET client library
	JSONGzip    Format = "json+gzip"
	JSONZstd    Format = "json+zstd"
	Parquet     Format = "parquet"
	ParquetGzip Format = "parquet+gzip"
	ParquetZstd Format = "parquet+zstd"
)

// Formats are all formats.
var Formats = []Format{NDJSON, NDJSONGzip, NDJSONZstd, JSON, JSONGzip, JSONZstd, Parquet, ParquetGzip, ParquetZstd}

// Parse returns the format of that name.
func Parse(name string) (Format, error) {
	if f := Format(name); slices.Contains(Formats, f) {
		return f, nil
	}
	return "", fmt.Errorf("no format %q: there are %q", name, Formats)
}

// Ext is how the names of its objects end, with the dot.
func (f Format) Ext() string {
	layout, compression := f.split()
	if layout == "parquet" || compression == "" {
		return "." + layout
	}
	return "." + layout + map[string]string{"gzip": ".gz", "zstd": ".zst"}[compression]
}

// ContentType is the media type of its objects.
func (f Format) ContentType() string {
	switch layout, compression := f.split(); {
	case layout == "parquet":
		return "application/vnd.apache.parquet"
	case compression != "":
		return "application/" + compression
	case layout == "ndjson":
		return "application/x-ndjson"
	default:
		return "application/json"
	}
}

func (f Format) split() (layout, compression string) {
	layout, compression, _ = strings.Cut(string(f), "+")
	return layout, compression
}
