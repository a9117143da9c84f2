package config

import (
	"errors"
	"fmt"
	"log/slog"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/dustin/go-humanize"

	"github.com/pawlhq/pawl/event"
)

// scalar is a type that is decoded from a single value.
type scalar interface {
	// parse sets the value. Its error must not contain the text, which may come from an
	// environment variable.
	parse(text string) error
	// wants describes the accepted values.
	wants() string
}

// errUnwanted is the error of parse if the text of wants describes the problem sufficiently.
var errUnwanted = errors.New("unwanted")

func oneOf[T ~string](v *T, text string, known ...string) error {
	if !slices.Contains(known, text) {
		return errUnwanted
	}
	*v = T(text)
	return nil
}

// Duration is a duration such as 30s, 5m or 12h. A file cannot set it to zero, because zero
// stands for a missing field and selects the default.
type Duration time.Duration

func (d *Duration) parse(text string) error {
	v, err := time.ParseDuration(text)
	if err != nil || v <= 0 {
		return errUnwanted
	}
	*d = Duration(v)
	return nil
}

func (Duration) wants() string { return "a duration above 0, like 30s, 5m or 12h" }

// Size is a number of bytes such as 512MiB. A file cannot set it to zero, as for Duration.
type Size int64

func (s *Size) parse(text string) error {
	v, err := humanize.ParseBytes(text)
	if err != nil || v == 0 || v > math.MaxInt64 {
		return errUnwanted
	}
	*s = Size(v)
	return nil
}

func (Size) wants() string { return "a size above 0, like 512MiB" }

// Secret is a text that is redacted when printed.
type Secret struct{ text string }

const redacted = "[redacted]"

func (s *Secret) parse(text string) error {
	if text == "" {
		return errors.New("must not be empty: set it, or remove the field")
	}
	s.text = text
	return nil
}

func (Secret) wants() string { return "a secret" }

// Reveal returns the text.
func (s Secret) Reveal() string { return s.text }

// String returns "[redacted]", or "" if there is no secret.
func (s Secret) String() string {
	if s.text == "" {
		return ""
	}
	return redacted
}

// GoString keeps the secret out of %#v.
func (s Secret) GoString() string { return s.String() }

// LogValue keeps the secret out of logs.
func (s Secret) LogValue() slog.Value { return slog.StringValue(s.String()) }

// MarshalText keeps the secret out of JSON and similar formats.
func (s Secret) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// Location is a bucket and a prefix: s3://bucket/prefix/.
type Location struct {
	Bucket string
	Prefix string // prefix of the keys: empty, or ending in "/"
}

func (l *Location) parse(text string) error {
	rest, ok := strings.CutPrefix(text, "s3://")
	if !ok {
		return errUnwanted
	}
	bucket, prefix, _ := strings.Cut(rest, "/")
	switch {
	case bucket == "":
		return errUnwanted
	case prefix != "" && !strings.HasSuffix(prefix, "/"):
		return errors.New(`the prefix must end in "/": add one`)
	}
	*l = Location{Bucket: bucket, Prefix: prefix}
	return nil
}

func (Location) wants() string { return "s3://bucket/prefix/" }

// IsZero reports whether there is no location.
func (l Location) IsZero() bool { return l == Location{} }

// String returns the location as a URL.
func (l Location) String() string { return "s3://" + l.Bucket + "/" + l.Prefix }

// Dialect is a dialect of events, written as its name.
type Dialect event.Dialect

// Event returns the dialect as a type of package event.
func (d Dialect) Event() event.Dialect { return event.Dialect(d) }

func (d *Dialect) parse(text string) error {
	known, err := event.ParseDialect(text)
	if err != nil {
		return errUnwanted
	}
	*d = Dialect(known)
	return nil
}

func (Dialect) wants() string {
	names := []string{"auto"}
	for _, d := range event.Dialects {
		names = append(names, string(d))
	}
	return strings.Join(names, ", ")
}

// Ledger is the storage of the rows.
type Ledger struct {
	Part
	kinds []LedgerKind
	dir   string // folder of the file
}

func (l *Ledger) parse(text string) error {
	name, rest, colon := strings.Cut(text, ":")
	i := slices.IndexFunc(l.kinds, func(k LedgerKind) bool { return k.Name == name })
	switch {
	case i >= 0 && (colon || l.kinds[i].Form == name):
		config, err := l.kinds[i].Parse(rest, l.dir)
		if err != nil {
			return err
		}
		l.Part = Part{Kind: name, Config: config}
		return nil
	case !colon:
		return errUnwanted
	}
	return fmt.Errorf("unknown kind: want %s", l.wants())
}

func (l *Ledger) wants() string {
	forms := make([]string, len(l.kinds))
	for i, k := range l.kinds {
		forms[i] = k.Form
	}
	return strings.Join(forms, " or ")
}
