package event

import (
	"fmt"
	"strings"
)

// Dialect is a way of writing notifications.
type Dialect string

// The dialects. The empty Dialect asks [Parse] to find out from the payload.
const (
	Detect      Dialect = ""
	AWS         Dialect = "aws"         // S3 records by SQS, Lambda or SNS (wrapped or raw)
	EventBridge Dialect = "eventbridge" // S3 by Amazon EventBridge
	MinIO       Dialect = "minio"
	VersityGW   Dialect = "versitygw"
	Ceph        Dialect = "ceph" // Ceph RGW
	R2          Dialect = "r2"   // Cloudflare R2
	GCS         Dialect = "gcs"  // Google Cloud Storage by Pub/Sub push
	Azure       Dialect = "azure"
)

// Dialects lists every dialect that can be asked for by name.
var Dialects = []Dialect{AWS, EventBridge, MinIO, VersityGW, Ceph, R2, GCS, Azure}

// ParseDialect reads a dialect's name; "" and "auto" mean [Detect].
func ParseDialect(name string) (Dialect, error) {
	if name == "" || name == "auto" {
		return Detect, nil
	}
	names := make([]string, len(Dialects))
	for i, d := range Dialects {
		if string(d) == name {
			return d, nil
		}
		names[i] = string(d)
	}
	return Detect, fmt.Errorf("unknown dialect %q: want auto, %s", name, strings.Join(names, ", "))
}

// TrustsSequencer reports whether the dialect's sequencer may decide, without a
// look at the object, that an event is old news.
//
// It may where no two changes of one key share a sequencer and later changes
// have larger ones. MinIO's nodes do not synchronise their clocks, and several
// of its events may share a sequencer; versitygw's counter restarts at one;
// Ceph's is a clock; R2 has none.
func (d Dialect) TrustsSequencer() bool {
	switch d {
	case AWS, EventBridge, Azure, GCS:
		return true
	}
	return false
}
