package demo

import (
	"bytes"
	"crypto/md5"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"io"
	"sync"
	"time"

	"github.com/johannesboyne/gofakes3"

	"github.com/pawlhq/pawl/internal/fakes3"
)

const (
	inputBucket  = "photos"
	outputBucket = "photos-out"
)

// maxObject bounds an object in bytes. The store keeps all objects in memory.
const maxObject = 256 << 20

type change struct {
	bucket, key string
	removed     bool
	existed     bool // before the change
	etag        string
	size        int64
	at          time.Time
	// order is greater than that of every earlier change.
	order uint64
}

// store is the in-memory storage of gofakes3 without versions. It reports each change.
type store struct {
	gofakes3.Backend
	// onChange is called for each change, in order. It must not block.
	onChange func(change)

	mu   sync.Mutex // held while a change is applied and reported
	last uint64
}

func newStore(onChange func(change), buckets ...string) (*store, error) {
	s := &store{Backend: fakes3.NewBackend(), onChange: onChange}
	for _, b := range buckets {
		if err := s.CreateBucket(b); err != nil {
			return nil, err
		}
	}
	return s, nil
}

// Multipart uploads also call PutObject.
func (s *store) PutObject(bucket, key string, meta map[string]string, body io.Reader, size int64, c *gofakes3.PutConditions) (gofakes3.PutObjectResult, error) {
	if size > maxObject {
		return gofakes3.PutObjectResult{}, gofakes3.ErrorMessage(gofakes3.ErrInvalidArgument, "the demo stores objects of up to 256 MiB")
	}
	// Read the body before locking, so that a slow client does not block others.
	data, err := gofakes3.ReadAll(body, size)
	if err != nil {
		return gofakes3.PutObjectResult{}, err
	}
	if promised := meta[sumHeader]; promised != "" && promised != sumOf(data) {
		return gofakes3.PutObjectResult{}, gofakes3.ErrBadDigest
	}
	// Set the default type of S3. Otherwise net/http guesses one for GET, but not for HEAD.
	if meta["Content-Type"] == "" {
		meta["Content-Type"] = "binary/octet-stream"
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	existed := s.has(bucket, key)
	res, err := s.Backend.PutObject(bucket, key, meta, bytes.NewReader(data), size, c)
	if err == nil {
		sum := md5.Sum(data)
		s.publish(change{bucket: bucket, key: key, existed: existed, etag: hex.EncodeToString(sum[:]), size: size})
	}
	return res, err
}

const sumHeader = "X-Amz-Checksum-Sha256"

func sumOf(data []byte) string {
	sum := sha256.Sum256(data)
	return base64.StdEncoding.EncodeToString(sum[:])
}

func (s *store) CopyObject(fromBucket, fromKey, bucket, key string, meta map[string]string) (gofakes3.CopyObjectResult, error) {
	return gofakes3.CopyObject(s, fromBucket, fromKey, bucket, key, meta)
}

func (s *store) DeleteObject(bucket, key string) (gofakes3.ObjectDeleteResult, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	existed := s.has(bucket, key)
	res, err := s.Backend.DeleteObject(bucket, key)
	if err == nil && existed {
		s.publish(change{bucket: bucket, key: key, existed: true, removed: true})
	}
	return res, err
}

func (s *store) DeleteMulti(bucket string, keys ...string) (res gofakes3.MultiDeleteResult, err error) {
	for _, key := range keys {
		if _, err := s.DeleteObject(bucket, key); err != nil {
			res.Error = append(res.Error, gofakes3.ErrorResultFromError(err))
			continue
		}
		res.Deleted = append(res.Deleted, gofakes3.ObjectID{Key: key})
	}
	return res, nil
}

func (s *store) has(bucket, key string) bool {
	_, err := s.Backend.HeadObject(bucket, key)
	return err == nil
}

// The order of a change is the current time, or more, so that it always increases.
func (s *store) publish(c change) {
	c.at = time.Now().UTC()
	s.last = max(s.last+1, uint64(c.at.UnixNano()))
	c.order = s.last
	s.onChange(c)
}

func (s *store) contents(bucket string) (map[string][]byte, error) {
	list, err := s.ListBucket(bucket, nil, gofakes3.ListBucketPage{})
	if err != nil {
		return nil, err
	}
	objects := make(map[string][]byte, len(list.Contents))
	for _, c := range list.Contents {
		o, err := s.GetObject(bucket, c.Key, nil)
		if err != nil {
			return nil, err
		}
		data, err := io.ReadAll(o.Contents)
		if err := errors.Join(err, o.Contents.Close()); err != nil {
			return nil, err
		}
		objects[c.Key] = data
	}
	return objects, nil
}
