package store

import "iter"

// ScanPages implements Scan for a driver that reads pages: read returns the first r.Limit records
// of r.
func ScanPages(r Range, page int, read func(r Range) ([]Record, error)) iter.Seq2[Record, error] {
	return func(yield func(Record, error) bool) {
		for left := r.Limit; ; {
			next := r
			next.Limit = page
			if r.Limit > 0 {
				next.Limit = min(page, left)
			}
			found, err := read(next)
			if err != nil {
				yield(Record{}, err)
				return
			}
			for i := range found {
				if !yield(found[i], nil) {
					return
				}
			}
			if left -= len(found); len(found) < next.Limit || r.Limit > 0 && left == 0 {
				return
			}
			if last := found[len(found)-1].Name; r.Newest {
				r.Before = last
			} else {
				r.After = last
			}
		}
	}
}
