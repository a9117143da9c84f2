package archive

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strings"
	"time"

	"github.com/pawlhq/pawl/bucket"
)

// Adoption says which objects of another program the archive goes on behind: those of
// the published program for the .NET client library, which lie below the same prefix.
//
//	<prefix>/YYYY/MM/DD/HH/mm/<sorter>-<first>-<last>
//
// Each is a JSON array of records that arrived in that minute. Its key tells neither
// the shard nor which of the numbers between first and last it holds. So these objects
// are read, and a record that one of them holds is not stored again.
type Adoption struct {
	// From and Until are the minutes that are looked into. The stream kept nothing
	// older at the first adoption, and the other program had ended at the last.
	From  time.Time `json:"from"`
	Until time.Time `json:"until"`
}

// KeptFormat is the format of an object that stands for records which another program
// has stored. It has a line for each entry: its number, and a digest of its records.
const KeptFormat = "kept"

func (o *Planned) kept() bool { return o.Format == KeptFormat }

// adoptedFormat is that of the other program's objects.
const adoptedFormat = "json"

var adoptedName = regexp.MustCompile(`^[0-9]{19}-[0-9]+-[0-9]+(\.json)?$`)

// adoptedMinute returns the minute of an object of the other program.
func adoptedMinute(prefix, key string) (time.Time, bool) {
	rest, ok := strings.CutPrefix(key, prefix)
	if !ok || len(rest) <= len(minuteLayout) || !adoptedName.MatchString(rest[len(minuteLayout)+1:]) {
		return time.Time{}, false
	}
	at, err := time.Parse(minuteLayout+"/", rest[:len(minuteLayout)+1])
	return at, err == nil
}

// stored returns the key of an object of the other program and of one of an archive,
// each empty if there is none in a minute or a later one. Zero: in any minute.
func (a *Archive) stored(ctx context.Context, from time.Time) (another, own string, err error) {
	for info, err := range a.Store.List(ctx, a.Bucket, a.Prefix, a.listAfter(from)) {
		if err != nil {
			return "", "", err
		}
		if _, ok := adoptedMinute(a.Prefix, info.Key); ok {
			another = info.Key
		} else if _, err := ParseKey(a.Prefix, info.Key); err == nil {
			own = info.Key
		}
		if another != "" && own != "" {
			break
		}
	}
	return another, own, nil
}

// until returns the adoption of all that the stream keeps now, and of what was adopted
// before.
func (ad *Adoption) until(now time.Time, retention time.Duration) *Adoption {
	from := now.Add(-retention - time.Hour)
	if ad != nil && ad.From.Before(from) {
		from = ad.From
	}
	return &Adoption{From: from, Until: now.Add(skew)}
}

// holds reports that objects of a minute are looked into.
func (ad *Adoption) holds(at time.Time) bool {
	return ad != nil && !at.Before(ad.From) && !at.After(ad.Until)
}

// adoptions remembers what the other program's objects of some minutes hold.
type adoptions map[time.Time]map[Number]string

// maxAdoptions bounds the minutes that are remembered: arrivals are nearly in order.
const maxAdoptions = 4

// adopted reports that the other program has stored an entry.
func (s *shard) adopted(ctx context.Context, e *Entry) (bool, error) {
	at := minute(e.Arrival)
	if !s.claim.Adopted.holds(at) || len(e.Records) == 0 {
		return false, nil
	}
	if s.adoptions[at] == nil {
		prints, err := s.readMinute(ctx, at)
		if err != nil {
			return false, err
		}
		if s.adoptions == nil || len(s.adoptions) >= maxAdoptions {
			s.adoptions = adoptions{}
		}
		s.adoptions[at] = prints
	}
	was, ok := s.adoptions[at][e.Number]
	if ok && was != fingerprint(e) {
		return false, fmt.Errorf("%w: the objects of another program below s3://%s/%s hold the entry %s of the shard %s in part, or otherwise: move the one that has it away",
			ErrBroken, s.Bucket, s.Prefix+at.Format(minuteLayout), e.Number, s.ID)
	}
	return ok, nil
}

// readMinute reads the other program's objects of a minute.
func (s *shard) readMinute(ctx context.Context, at time.Time) (prints map[Number]string, err error) {
	for try := 1; ; try++ {
		prints = map[Number]string{}
		err = s.readPrints(ctx, s.Prefix+at.Format(minuteLayout)+"/", func(_ string, e *Entry) { prints[e.Number] = fingerprint(e) })
		if err == nil || !errors.Is(err, bucket.ErrUnavailable) || ctx.Err() != nil {
			return prints, err
		}
		if err := s.pace(ctx, try, err); err != nil {
			return nil, err
		}
	}
}

func (a *Archive) readPrints(ctx context.Context, prefix string, see func(key string, e *Entry)) error {
	for info, err := range a.Store.List(ctx, a.Bucket, prefix, "") {
		if err != nil {
			return err
		}
		if _, ok := adoptedMinute(a.Prefix, info.Key); !ok {
			continue
		}
		entries, err := a.readAdopted(ctx, info.Key)
		if err != nil {
			return err
		}
		for i := range entries {
			see(info.Key, &entries[i])
		}
	}
	return nil
}

// readAdopted reads an object of the other program.
func (a *Archive) readAdopted(ctx context.Context, key string) ([]Entry, error) {
	_, r, err := a.Store.Get(ctx, a.object(key))
	if err != nil {
		return nil, err
	}
	defer r.Close()
	body, err := io.ReadAll(r)
	if err != nil {
		return nil, fmt.Errorf("%w: reading %s: %w", bucket.ErrUnavailable, a.object(key), err)
	}
	entries, err := a.Codec.Decode(adoptedFormat, "", body)
	if err != nil {
		err = fmt.Errorf("%w: %s has the key of another program's object, and is no JSON array of records: move it away: %w", ErrBroken, a.object(key), err)
	}
	return entries, err
}

// fingerprint is a digest of what the other program keeps of an entry: not its hash
// key, nor whether a first record is one of an aggregate.
func fingerprint(e *Entry) string {
	d := NewDigest("")
	for _, r := range e.Records {
		r.Sub, r.HashKey = max(r.Sub, 0), ""
		d.add(r)
	}
	return d.Sum()
}

// keptNote is the content of an object that stands for entries which are stored.
func keptNote(entries []Entry) (body []byte) {
	for i := range entries {
		body = fmt.Appendf(body, "%s %s\n", entries[i].Number, fingerprint(&entries[i]))
	}
	return body
}

// checkKept compares what an object stands for with what the other program's objects
// hold.
func (v *verifier) checkKept(n Name, key string, body []byte) {
	for line := range bytes.Lines(body) {
		number, print, _ := strings.Cut(strings.TrimSuffix(string(line), "\n"), " ")
		if v.prints[Number(number)] != print || !n.Contains(Number(number)) {
			v.find(Finding{Kind: Damaged, Shard: n.Shard, Range: n.Range.String(), Keys: []string{key},
				What: "it says that another program has stored the entry " + number + ", whose objects do not hold it, or otherwise"})
			return
		}
		v.report.Entries++
	}
}

// seeAdopted reads an object of the other program.
func (v *verifier) seeAdopted(ctx context.Context, at time.Time, key string) error {
	v.report.Adopted++
	if !v.Deep || !v.claim.Adopted.holds(at) {
		return nil
	}
	entries, err := v.readAdopted(ctx, key)
	switch {
	case errors.Is(err, ErrBroken):
		v.find(Finding{Kind: Damaged, Keys: []string{key}, What: "it has the key of another program's object, and is no JSON array of records"})
		return nil
	case err != nil:
		return v.unreadable(ctx, "", key, err)
	}
	for i := range entries {
		e := &entries[i]
		if _, twice := v.prints[e.Number]; twice {
			v.find(Finding{Kind: Overlap, Keys: []string{key}, What: "another program has stored the entry " + string(e.Number) + " twice: here, and in another object"})
		}
		v.prints[e.Number] = fingerprint(e)
	}
	return nil
}
