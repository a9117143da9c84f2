package app

import (
	"fmt"
	"os"
	"strconv"
	"strings"

	"github.com/pawlhq/pawl/event"
)

// BucketAndPrefix reads s3://bucket[/prefix].
func BucketAndPrefix(arg string) (name, prefix string, err error) {
	rest, ok := strings.CutPrefix(arg, "s3://")
	name, prefix, _ = strings.Cut(rest, "/")
	if !ok || name == "" {
		return "", "", Usage("%s is not a bucket: want s3://bucket or s3://bucket/prefix", event.Quote(arg))
	}
	return name, prefix, nil
}

// versionQuery precedes the version ID in the output of event.Object.String, and occurs nowhere else in it.
const versionQuery = "?versionId="

// ObjectCandidates returns the objects that an argument can mean, the likeliest first. ls quotes keys with
// special characters, a shell removes the quotes, and a plain key can look like either form. The caller
// chooses the candidate that has rows.
func ObjectCandidates(arg string) ([]event.Object, error) {
	var all []event.Object
	if inner, ok := strings.CutPrefix(arg, `"`); ok && strings.HasSuffix(inner, `"`) {
		all = AppendPrinted(all, strings.TrimSuffix(inner, `"`))
	} else {
		if strings.Contains(arg, versionQuery) {
			all = AppendPrinted(all, arg)
		}
		all = appendObject(all, arg, "")
		if strings.Contains(arg, `\`) {
			all = AppendPrinted(all, arg)
		}
	}
	if len(all) == 0 {
		return nil, Usage("%s is not an object: want s3://bucket/key", event.Quote(arg))
	}
	return all, nil
}

// AppendPrinted parses the output of event.Object.String, without its quotes. Invalid text appends nothing.
func AppendPrinted(all []event.Object, text string) []event.Object {
	address, version, _ := strings.Cut(text, versionQuery)
	address, err := strconv.Unquote(`"` + address + `"`)
	if err != nil {
		return all
	}
	if version, err = strconv.Unquote(`"` + version + `"`); err != nil {
		return all
	}
	return appendObject(all, address, version)
}

func appendObject(all []event.Object, address, version string) []event.Object {
	rest, scheme := strings.CutPrefix(address, "s3://")
	bucket, key, _ := strings.Cut(rest, "/")
	if !scheme || bucket == "" || key == "" {
		return all
	}
	return append(all, event.Object{Bucket: bucket, Key: key, VersionID: version})
}

func isPrintable(s string) bool {
	for _, r := range s {
		if r == '\uFFFD' || r == '\\' || !strconv.IsPrint(r) {
			return false
		}
	}
	return true
}

// ShellQuote returns an object as a word for a POSIX shell.
func ShellQuote(o event.Object) string {
	s := o.String()
	raw := "s3://" + o.Bucket + "/" + o.Key
	if o.VersionID == "" && isPrintable(raw) && !strings.Contains(raw, versionQuery) {
		s = raw
	}
	return ShellWord(s)
}

// ShellWord quotes s for a POSIX shell if necessary.
func ShellWord(s string) string {
	if strings.Trim(s, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789:/._-+=@%,") == "" {
		return s
	}
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}

// FormatPrefix returns a bucket and prefix as s3://bucket/prefix.
func FormatPrefix(bucket, prefix string) string {
	return event.Object{Bucket: bucket, Key: prefix}.String()
}

// Executable returns the path of this program.
func Executable() (string, error) {
	path, err := os.Executable()
	if err != nil {
		err = fmt.Errorf("find this program, which the demo starts again: %w", err)
	}
	return path, err
}

// DemoSeeds bounds the demo's seeds, so that they are easy to type.
const DemoSeeds = 100_000
