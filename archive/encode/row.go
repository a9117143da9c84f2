package encode

import (
	"cmp"
	"errors"
	"fmt"
	"iter"
	"time"
	"unicode/utf8"

	"github.com/pawlhq/pawl/archive"
)

type row struct {
	shard        string
	number       archive.Number
	sub          int // -1 outside of an aggregate
	partitionKey string
	hashKey      string
	arrival      time.Time
	data         []byte
	malformed    string // the reason; empty for other records
}

const maxSub = 1<<24 - 1

func rowsOf(shard string, e archive.Record) iter.Seq2[row, error] {
	return func(yield func(row, error) bool) {
		if e.Malformed != nil {
			r := row{
				shard: shard, number: e.Number, sub: -1, partitionKey: e.PartitionKey, arrival: e.Arrival,
				data: e.Raw, malformed: cmp.Or(e.Malformed.Error(), "malformed"),
			}
			yield(r, r.check())
			return
		}
		if len(e.UserRecords) == 0 {
			yield(row{}, fmt.Errorf("record %s has no user records", e.Number))
		}
		for i, rec := range e.UserRecords {
			r := row{
				shard: shard, number: rec.Number, sub: rec.Sub, partitionKey: rec.PartitionKey, hashKey: rec.HashKey,
				arrival: rec.Arrival, data: rec.Data,
			}
			err := r.check()
			if single := rec.Sub == -1 && len(e.UserRecords) == 1; err == nil &&
				(rec.Number != e.Number || !rec.Arrival.Equal(e.Arrival) || rec.Sub != i && !single) {
				err = fmt.Errorf("user record %d of record %s has another number, arrival or sub-sequence number: %s, %s, %d",
					i, e.Number, rec.Number, rec.Arrival, rec.Sub)
			}
			if !yield(r, err) || err != nil {
				return
			}
		}
	}
}

func (r *row) check() error {
	year := r.arrival.UTC().Year()
	switch {
	case !isNumber(r.number):
		return fmt.Errorf("%.100q is not a sequence number", r.number)
	case r.sub < -1 || r.sub > maxSub:
		return fmt.Errorf("record %s has sub-sequence number %d", r.number, r.sub)
	case !utf8.ValidString(r.partitionKey) || !utf8.ValidString(r.hashKey) || !utf8.ValidString(r.malformed):
		return fmt.Errorf("the key of record %s is not UTF-8", r.number)
	case year < 0 || year > 9999:
		return fmt.Errorf("record %s arrived in the year %d", r.number, year)
	}
	return nil
}

func isNumber(n archive.Number) bool {
	if n == "" || n[0] == '0' && n != "0" {
		return false
	}
	for _, c := range []byte(n) {
		if c < '0' || c > '9' {
			return false
		}
	}
	return true
}

func recordsOf(shard string, rows iter.Seq2[row, error]) iter.Seq2[archive.Record, error] {
	return func(yield func(archive.Record, error) bool) {
		var e archive.Record
		var size int
		for r, err := range rows {
			if err == nil {
				err = r.check()
			}
			if err == nil && r.shard != shard {
				err = fmt.Errorf("record %s belongs to shard %.100q, want %s", r.number, r.shard, shard)
			}
			if err == nil && r.sub > 0 {
				size += len(r.data) + len(r.partitionKey) + len(r.hashKey)
				err = r.checkContinues(&e, size)
			}
			if err != nil {
				yield(archive.Record{}, err)
				return
			}
			if r.sub > 0 {
				e.UserRecords = append(e.UserRecords, r.userRecord())
				continue
			}
			if e.Number != "" && !yield(e, nil) {
				return
			}
			e, size = r.record(), len(r.data)
		}
		if e.Number != "" {
			yield(e, nil)
		}
	}
}

func (r *row) checkContinues(e *archive.Record, size int) error {
	switch last := len(e.UserRecords) - 1; {
	case last < 0 || e.Number != r.number || e.UserRecords[last].Sub != r.sub-1:
		return fmt.Errorf("record %s with sub-sequence number %d does not follow the previous record", r.number, r.sub)
	case !r.arrival.Equal(e.Arrival):
		return fmt.Errorf("the user records of %s have different arrival times", r.number)
	case size > maxValue:
		return fmt.Errorf("the user records of %s are larger than %d bytes in total", r.number, maxValue)
	}
	return nil
}

func (r *row) userRecord() archive.UserRecord {
	return archive.UserRecord{
		Number: r.number, Sub: r.sub, PartitionKey: r.partitionKey, HashKey: r.hashKey, Arrival: r.arrival, Data: r.data,
	}
}

func (r *row) record() archive.Record {
	e := archive.Record{Number: r.number, Arrival: r.arrival}
	if r.sub < 0 {
		e.PartitionKey = r.partitionKey
	}
	if r.malformed != "" {
		e.Malformed, e.Raw = errors.New(r.malformed), r.data
		return e
	}
	e.UserRecords = []archive.UserRecord{r.userRecord()}
	return e
}
