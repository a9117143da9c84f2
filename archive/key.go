package archive

import (
	"fmt"
	"strings"
	"time"
)

// GapFormat is the format of a gap object.
const GapFormat = "gap"

// Name contains the parts of an object's key:
//
//	<prefix>/YYYY/MM/DD/HH/mm/<shard>-<sorter>-<start>-<end>.<format>
//	<prefix>/YYYY/MM/DD/HH/mm/_<shard>-<sorter>-<start>-<end>.gap
//
// The sorter makes a listing show the newest object of a shard and minute first. The name of a gap
// begins with an underscore, because Hadoop, Spark and Athena ignore such files.
type Name struct {
	Minute time.Time
	Shard  string
	Range
	Format string // like ndjson.gz
}

const (
	minuteLayout = "2006/01/02/15/04"
	reserved     = "_pawl/" // folder of the objects that are not archive objects
)

// Key returns the key of the object. prefix is empty or ends with a slash.
func (n Name) Key(prefix string) string { return n.key(prefix, n.notePrefix()) }

func (n Name) key(prefix, mark string) string {
	return prefix + n.Minute.UTC().Format(minuteLayout) + "/" + mark + n.Shard + "-" + n.End.sortKey() + "-" + n.Range.String() + "." + n.Format
}

func (n Name) notePrefix() string {
	if n.Format == GapFormat {
		return "_"
	}
	return ""
}

// sortKey returns a text that sorts lower as n increases: the nine's complements of the number of
// digits, in three digits, and of each digit.
func (n Number) sortKey() string {
	l := len(n)
	d := append([]byte{'0' + byte(l/100), '0' + byte(l/10%10), '0' + byte(l%10)}, n...)
	for i := range d {
		d[i] = '0' + '9' - d[i]
	}
	return string(d)
}

// ParseKey parses a key that Key returned. It also accepts names of gaps without the underscore,
// which earlier versions of Pawl wrote.
func ParseKey(prefix, key string) (Name, error) {
	rest, ok := strings.CutPrefix(key, prefix)
	if ok && len(rest) > len(minuteLayout)+1 {
		minute, err := time.Parse(minuteLayout, rest[:len(minuteLayout)])
		file, format, _ := strings.Cut(rest[len(minuteLayout)+1:], ".")
		fields := strings.Split(file, "-")
		if last := len(fields) - 1; err == nil && last >= 3 && format != "" && !strings.Contains(format, "/") {
			r, err := ParseRange(fields[last-1] + "-" + fields[last])
			n := Name{minute, strings.Join(fields[:last-2], "-"), r, format}
			n.Shard = strings.TrimPrefix(n.Shard, n.notePrefix())
			if err == nil && (n.key(prefix, n.notePrefix()) == key || n.key(prefix, "") == key) {
				return n, nil
			}
		}
	}
	return Name{}, fmt.Errorf("%.300q is not a key of this archive", key)
}
