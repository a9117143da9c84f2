package inventory

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/pawlhq/pawl/event"
)

const (
	formatCSV     = "CSV"
	formatParquet = "Parquet"
)

// The columns that the package reads, by their CSV names.
const (
	bucketColumn   = "Bucket"
	keyColumn      = "Key"
	versionColumn  = "VersionId"
	latestColumn   = "IsLatest"
	markerColumn   = "IsDeleteMarker"
	sizeColumn     = "Size"
	modifiedColumn = "LastModifiedDate"
	etagColumn     = "ETag"
)

// https://docs.aws.amazon.com/AmazonS3/latest/API/API_InventoryConfiguration.html
var ignored = []string{
	"StorageClass", "IsMultipartUploaded", "ReplicationStatus", "EncryptionStatus", "ObjectLockRetainUntilDate", "ObjectLockMode",
	"ObjectLockLegalHoldStatus", "ObjectLockEventHoldStatus", "ObjectLockEventHoldDuration", "IntelligentTieringAccessTier",
	"IntelligentTieringReferenceDate", "BucketKeyStatus", "ChecksumAlgorithm", "ObjectAccessControlList", "ObjectOwner",
	"LifecycleExpirationDate",
}

func columnsOf(format, schema string) (columns []string, err error) {
	switch format {
	case formatCSV:
		for name := range strings.SplitSeq(schema, ",") {
			columns = append(columns, strings.TrimSpace(name))
		}
	case formatParquet:
		for _, field := range parquetField.FindAllStringSubmatch(schema, -1) {
			columns = append(columns, csvName(field[1]))
		}
	default:
		return nil, fmt.Errorf("format %s is not supported: configure the inventory as CSV or Parquet", event.Quote(format))
	}
	return columns, checkColumns(columns)
}

func checkColumns(columns []string) error {
	needed := []string{bucketColumn, keyColumn, sizeColumn, modifiedColumn, etagColumn}
	versions := []string{versionColumn, latestColumn, markerColumn}
	for i, name := range columns {
		switch {
		case slices.Contains(columns[:i], name):
			return fmt.Errorf("its fileSchema has the column %s twice", event.Quote(name))
		case slices.Contains(versions, name):
			needed = append(needed, latestColumn, markerColumn)
		case !slices.Contains(needed, name) && !slices.Contains(ignored, name):
			return fmt.Errorf("its fileSchema has an unknown column %s: leave that field out of the inventory", event.Quote(name))
		}
	}
	for _, name := range needed {
		if !slices.Contains(columns, name) {
			return errors.New("its fileSchema does not have the column " + name +
				": the inventory must include Size, LastModifiedDate and ETag, and, if it covers all versions, IsLatest and IsDeleteMarker")
		}
	}
	return nil
}

var parquetField = regexp.MustCompile(`\b(?:required|optional|repeated)\s+\w+\s+(\w+)`)

func parquetName(name string) string {
	return strings.ToLower(wordStart.ReplaceAllString(name, "${1}_${2}"))
}

var wordStart = regexp.MustCompile(`(.)([A-Z])`)

// csvName returns an unknown name unchanged.
func csvName(name string) string {
	for _, known := range slices.Concat([]string{
		bucketColumn, keyColumn, versionColumn, latestColumn, markerColumn, sizeColumn, modifiedColumn, etagColumn,
	}, ignored) {
		if parquetName(known) == name {
			return known
		}
	}
	return name
}
