package dynamo

import (
	"cmp"
	"context"
	"iter"
	"slices"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/pawlhq/pawl/store"
)

const maxBatchGetKeys = 100

// Load reads items with strong consistency.
func (s *Store) Load(ctx context.Context, keys []store.Key) ([]store.Record, error) {
	spaces := make(map[string]string, 1) // by hash key
	distinct := make([]item, 0, len(keys))
	sorted := slices.SortedFunc(slices.Values(keys), store.Key.Compare)
	for _, k := range slices.Compact(sorted) {
		key := s.key(k)
		spaces[textOf(key, attrPart)] = k.Space
		distinct = append(distinct, key)
	}
	return s.load(ctx, distinct, func(part string) string { return spaces[part] })
}

func (s *Store) load(ctx context.Context, keys []item, spaceOf func(part string) string) (found []store.Record, err error) {
	for len(keys) > 0 {
		n := min(len(keys), maxBatchGetKeys)
		items, unread, err := s.batchGet(ctx, keys[:n])
		if err != nil {
			return nil, err
		}
		for _, i := range items {
			r, err := s.record(spaceOf(textOf(i, attrPart)), i)
			if err != nil {
				return nil, err
			}
			found = append(found, r)
		}
		keys = append(unread, keys[n:]...)
	}
	return found, nil
}

// batchGet also returns the keys that did not fit into the response.
func (s *Store) batchGet(ctx context.Context, keys []item) (items, unread []item, err error) {
	want := types.KeysAndAttributes{ConsistentRead: aws.Bool(true), Keys: keys}
	for wait := initialBackoff; ; wait = min(2*wait, callTimeout) {
		err = s.call(ctx, "load", func(ctx context.Context) error {
			got, err := s.client.BatchGetItem(ctx, &dynamodb.BatchGetItemInput{RequestItems: map[string]types.KeysAndAttributes{s.table: want}, ReturnConsumedCapacity: returnUnits})
			if err == nil {
				s.reportAll(store.ReadUnits, got.ConsumedCapacity)
				items, unread = got.Responses[s.table], got.UnprocessedKeys[s.table].Keys
			}
			return err
		})
		if err != nil || len(unread) < len(keys) {
			return items, unread, err
		}
		if err := pause(ctx, wait); err != nil {
			return nil, nil, s.explain(ctx, "load", err)
		}
	}
}

const initialBackoff = 50 * time.Millisecond

func pause(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// Due omits an index key whose record is no longer due at that time. Skip counts index keys, so it
// is inexact while the index lags.
func (s *Store) Due(ctx context.Context, r store.DueRange) (found []store.Record, err error) {
	first, after := []byte{0}, []byte(nil)
	if !r.After.Due.IsZero() {
		first, after = dueKey(r.After.Due, firstKey(r.After.Name)), dueKey(r.After.Due, sortKey(r.After.Name))
	}
	last := dueKey(r.Before, []byte(endKey))
	if slices.Compare(first, last) > 0 {
		return nil, nil
	}
	var keys []item
	returned := map[string]bool{}
	add := func() error {
		some, err := s.loadDue(ctx, r, keys)
		for _, one := range some {
			if !returned[one.Name] { // a record that moved meanwhile appears twice
				returned[one.Name] = true
				found = append(found, one)
			}
		}
		keys = keys[:0]
		return err
	}
	in := span{index: dueIndex, attr: attrDue, first: first, last: last, page: r.Limit}
	for i, err := range s.merge(ctx, "due", r.Space, in) {
		if err != nil {
			return nil, err
		}
		due := bytesOf(i, attrDue)
		if enough := len(keys) >= r.Limit-len(found); enough && !sameRun(bytesOf(keys[len(keys)-1], attrDue), due, maxSortName+8) {
			if err := add(); err != nil || len(found) >= r.Limit {
				return found[:min(len(found), r.Limit)], err
			}
		}
		switch {
		case slices.Equal(due, after):
		case r.Skip > 0:
			r.Skip--
		default:
			keys = append(keys, i)
		}
	}
	err = add()
	return found[:min(len(found), r.Limit)], err
}

func (s *Store) loadDue(ctx context.Context, r store.DueRange, keys []item) ([]store.Record, error) {
	places := make(map[string]bool, len(keys)) // in the index
	seen := make(map[string]bool, len(keys))
	var distinct []item
	for _, i := range keys {
		id := textOf(i, attrPart) + string(bytesOf(i, attrSort))
		places[id+string(bytesOf(i, attrDue))] = true
		if !seen[id] { // a lagging index may contain a record at its old and its new time
			seen[id] = true
			distinct = append(distinct, item{attrPart: i[attrPart], attrSort: i[attrSort]})
		}
	}
	found, err := s.load(ctx, distinct, func(string) string { return r.Space })
	if err != nil {
		return nil, err
	}
	found = slices.DeleteFunc(found, func(f store.Record) bool {
		sort := sortKey(f.Name)
		return f.Due.IsZero() || !places[part(r.Space, s.shard(f.Key))+string(sort)+string(dueKey(f.Due, sort))] ||
			comparePlaces(f, store.Record{Key: store.Key{Name: r.After.Name}, Due: r.After.Due}) <= 0
	})
	slices.SortFunc(found, comparePlaces)
	return found, nil
}

func comparePlaces(a, b store.Record) int {
	return cmp.Or(a.Due.Compare(b.Due), cmp.Compare(a.Name, b.Name))
}

// Scan reads a space with one shard with strong consistency.
func (s *Store) Scan(ctx context.Context, r store.Range) iter.Seq2[store.Record, error] {
	return func(yield func(store.Record, error) bool) {
		if r.Before != "" && r.After >= r.Before {
			return
		}
		in := span{attr: attrSort, first: firstKey(r.After), last: []byte(endKey), newest: r.Newest, page: firstPage}
		if r.Before != "" {
			in.last = lastKey(r.Before)
		}
		if r.Limit > 0 {
			in.page = min(in.page, r.Limit+2) // the bounds are read as well
		}
		left := r.Limit
		for found, err := range s.inNameOrder(ctx, r, in) {
			if err == nil && (found.Name <= r.After || r.Before != "" && found.Name >= r.Before) {
				continue
			}
			if !yield(found, err) || err != nil {
				return
			}
			if left--; left == 0 {
				return
			}
		}
	}
}

// Long names with the same beginning are in the order of their hashes.
func (s *Store) inNameOrder(ctx context.Context, r store.Range, in span) iter.Seq2[store.Record, error] {
	return func(yield func(store.Record, error) bool) {
		var run []store.Record
		flush := func() bool {
			slices.SortFunc(run, func(a, b store.Record) int {
				if r.Newest {
					a, b = b, a
				}
				return cmp.Compare(a.Name, b.Name)
			})
			for i := range run {
				if !yield(run[i], nil) {
					return false
				}
			}
			run = run[:0]
			return true
		}
		for i, err := range s.merge(ctx, "scan", r.Space, in) {
			var next store.Record
			if err == nil {
				next, err = s.record(r.Space, i)
			}
			if err != nil {
				yield(store.Record{}, err)
				return
			}
			if len(run) > 0 && !sameRun(sortKey(run[0].Name), sortKey(next.Name), maxSortName) && !flush() {
				return
			}
			run = append(run, next)
		}
		flush()
	}
}

// sameRun reports whether two keys belong to long names that differ only in their hashes.
func sameRun(a, b []byte, prefix int) bool {
	return len(a) > prefix+1 && len(b) > prefix+1 && string(a[:prefix+1]) == string(b[:prefix+1])
}
