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

// versionQuery stands before a version id in what event.Object prints, and
// nowhere else in it.
const versionQuery = "?versionId="

// ObjectCandidates returns the objects that an argument may mean, the likeliest first.
//
// A key may hold anything, so what ls prints is quoted where it has to be; a
// shell takes the quotes away again; and a key that a person types may look
// like either. The ledger decides between them.
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

// AppendPrinted reads what event.Object prints, without its quotes.
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

// isPrintable reports that a terminal can show s as it is, but for spaces and
// quotes.
func isPrintable(s string) bool {
	for _, r := range s {
		if r == '\uFFFD' || r == '\\' || !strconv.IsPrint(r) {
			return false
		}
	}
	return true
}

// ShellQuote quotes an object for a POSIX shell, so that it can be pasted.
func ShellQuote(o event.Object) string {
	s := o.String()
	raw := "s3://" + o.Bucket + "/" + o.Key
	if o.VersionID == "" && isPrintable(raw) && !strings.Contains(raw, versionQuery) {
		s = raw
	}
	return ShellWord(s)
}

// ShellWord quotes a text for a POSIX shell where it has to be.
func ShellWord(s string) string {
	if strings.Trim(s, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789:/._-+=@%,") == "" {
		return s
	}
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}

// FormatPrefix prints where a pipeline's objects are.
func FormatPrefix(bucket, prefix string) string {
	return event.Object{Bucket: bucket, Key: prefix}.String()
}

// Executable is the path of this program.
func Executable() (string, error) {
	path, err := os.Executable()
	if err != nil {
		err = fmt.Errorf("cannot find this program, of which the demo starts more processes: %w", err)
	}
	return path, err
}

// DemoSeeds is how many seeds the demo chooses from: few enough to be typed.
const DemoSeeds = 100_000
