package event

import (
	"fmt"
	"strings"
)

// Dialect is a format of notifications.
type Dialect string

// With [Detect], [Parse] detects the dialect.
const (
	Detect      Dialect = ""
	AWS         Dialect = "aws"         // S3 through SQS, Lambda or SNS
	EventBridge Dialect = "eventbridge" // S3 through Amazon EventBridge
	MinIO       Dialect = "minio"
	VersityGW   Dialect = "versitygw"
	Ceph        Dialect = "ceph" // Ceph RGW
	R2          Dialect = "r2"   // Cloudflare R2
	GCS         Dialect = "gcs"  // Google Cloud Storage through Pub/Sub push
	Azure       Dialect = "azure"
)

// Dialects lists all dialects except [Detect].
var Dialects = []Dialect{AWS, EventBridge, MinIO, VersityGW, Ceph, R2, GCS, Azure}

// ParseDialect returns the dialect with the given name; "" and "auto" mean [Detect].
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

// TrustsSequencer reports whether the dialect's sequencer alone can decide that an event is stale.
//
// No two changes of one key may share a sequencer, and later changes must have larger ones. MinIO's nodes
// have different clocks, and several events may share a sequencer. versitygw's counter restarts at one.
// Ceph's sequencer is a clock, and R2 has none.
func (d Dialect) TrustsSequencer() bool {
	switch d {
	case AWS, EventBridge, Azure, GCS:
		return true
	}
	return false
}
