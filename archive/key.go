package archive

import (
	"fmt"
	"strings"
	"time"
)

// GapFormat is the format of an object that stands for records that are not
// there.
const GapFormat = "gap"

// Name is what the key of an object says.
//
//	<prefix>/YYYY/MM/DD/HH/mm/<shard>-<sorter>-<start>-<end>.<format>
//	<prefix>/YYYY/MM/DD/HH/mm/_<shard>-<sorter>-<start>-<end>.gap
//
// The sorter makes the newest object of a shard and minute list first. The name of a
// note, which holds no records, begins with an underscore, because Hadoop, Spark and
// Athena ignore such files when they read a folder.
type Name struct {
	Minute time.Time
	Shard  string
	Range
	Format string // what the content is in: ndjson.gz, say, or GapFormat
}

const (
	minuteLayout = "2006/01/02/15/04"
	reserved     = "_pawl/" // below a prefix: what is not records
)

// Key returns the key of an object below a prefix, which is empty or ends with a
// slash.
func (n Name) Key(prefix string) string { return n.key(prefix, n.notePrefix()) }

func (n Name) key(prefix, mark string) string {
	return prefix + n.Minute.UTC().Format(minuteLayout) + "/" + mark + n.Shard + "-" + n.End.sortKey() + "-" + n.Range.String() + "." + n.Format
}

// mark begins the names of notes.
func (n Name) notePrefix() string {
	if n.Format == GapFormat {
		return "_"
	}
	return ""
}

// sorter falls as n rises, as text: the nine's complement of how many digits n
// has, in three digits, and of these.
func (n Number) sortKey() string {
	l := len(n)
	d := append([]byte{'0' + byte(l/100), '0' + byte(l/10%10), '0' + byte(l%10)}, n...)
	for i := range d {
		d[i] = '0' + '9' - d[i]
	}
	return string(d)
}

// ParseKey reads the key of an object below a prefix. It accepts what Key returns,
// the name of a note without its underscore, as earlier versions of Pawl wrote it, and
// nothing else.
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
