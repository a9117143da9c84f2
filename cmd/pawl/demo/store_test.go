package demo

import (
	"bytes"
	"crypto/md5"
	"encoding/hex"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"
	"github.com/google/go-cmp/cmp"
)

type recorder struct{ changes []change }

func (r *recorder) onChange(c change) { r.changes = append(r.changes, c) }

func (r *recorder) list() (list []string) {
	for _, c := range r.changes {
		verb := "put"
		switch {
		case c.removed:
			verb = "remove"
		case c.existed:
			verb = "overwrite"
		}
		list = append(list, verb+" "+c.bucket+"/"+c.key)
	}
	return list
}

func client(t *testing.T, s *store) *s3.Client {
	t.Helper()
	e, err := serve(t.Context(), "127.0.0.1:0", s3API(s))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := e.close(); err != nil {
			t.Error(err)
		}
	})
	return s3.New(s3.Options{
		BaseEndpoint: &e.url, Region: region, UsePathStyle: true,
		Credentials: credentials.NewStaticCredentialsProvider(accessKey, accessKey, ""),
	})
}

func TestStoreReportsChanges(t *testing.T) {
	var r recorder
	s, err := newStore(r.onChange, inputBucket, outputBucket)
	if err != nil {
		t.Fatal(err)
	}
	c, ctx := client(t, s), t.Context()
	must := func(_ any, err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	in, key := aws.String(inputBucket), aws.String("in/a + b.jpg")
	put := func(o *s3.PutObjectInput) (any, error) {
		o.Bucket, o.Key, o.Body = in, key, strings.NewReader("x")
		return c.PutObject(ctx, o)
	}
	must(put(&s3.PutObjectInput{}))
	must(put(&s3.PutObjectInput{}))
	if _, err := put(&s3.PutObjectInput{IfNoneMatch: aws.String("*")}); err == nil {
		t.Error("the store accepted a PUT whose condition does not hold")
	}
	must(c.CopyObject(ctx, &s3.CopyObjectInput{Bucket: in, Key: aws.String("in/copy"), CopySource: aws.String(inputBucket + "/in/a%20%2B%20b.jpg")}))
	must(c.DeleteObject(ctx, &s3.DeleteObjectInput{Bucket: in, Key: key}))
	must(c.DeleteObject(ctx, &s3.DeleteObjectInput{Bucket: in, Key: key}))
	must(nil, upload(t, c, "in/parts"))
	must(c.DeleteObjects(ctx, &s3.DeleteObjectsInput{Bucket: in, Delete: &types.Delete{
		Objects: []types.ObjectIdentifier{{Key: aws.String("in/parts")}, {Key: aws.String("in/never")}},
	}}))
	want := []string{
		"put photos/in/a + b.jpg", "overwrite photos/in/a + b.jpg", "put photos/in/copy",
		"remove photos/in/a + b.jpg", "put photos/in/parts", "remove photos/in/parts",
	}
	if diff := cmp.Diff(want, r.list()); diff != "" {
		t.Errorf("reported (-want +got):\n%s", diff)
	}
}

func TestHeadAndGetAgree(t *testing.T) {
	s, err := newStore(func(change) {}, inputBucket, outputBucket)
	if err != nil {
		t.Fatal(err)
	}
	e, err := serve(t.Context(), "127.0.0.1:0", s3API(s))
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := e.close(); err != nil {
			t.Error(err)
		}
	}()
	url := e.url + "/" + inputBucket + "/in/cat.png"
	var said []http.Header
	for _, method := range []string{http.MethodPut, http.MethodHead, http.MethodGet} {
		req, err := http.NewRequestWithContext(t.Context(), method, url, strings.NewReader("\x89PNG\r\n\x1a\n"))
		if err != nil {
			t.Fatal(err)
		}
		res, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		if err := res.Body.Close(); err != nil || res.StatusCode != http.StatusOK {
			t.Fatalf("%s: %s, %v", method, res.Status, err)
		}
		for _, h := range []string{"Date", "X-Amz-Id-2", "X-Amz-Request-Id"} {
			res.Header.Del(h)
		}
		said = append(said, res.Header)
	}
	if diff := cmp.Diff(said[1], said[2]); diff != "" {
		t.Errorf("HEAD and GET differ (-HEAD +GET):\n%s", diff)
	}
}

func upload(t *testing.T, c *s3.Client, key string) error {
	in, k := aws.String(inputBucket), &key
	up, err := c.CreateMultipartUpload(t.Context(), &s3.CreateMultipartUploadInput{Bucket: in, Key: k})
	if err != nil {
		return err
	}
	part, err := c.UploadPart(t.Context(), &s3.UploadPartInput{
		Bucket: in, Key: k, UploadId: up.UploadId, PartNumber: aws.Int32(1), Body: bytes.NewReader(make([]byte, 100)),
	})
	if err != nil {
		return err
	}
	_, err = c.CompleteMultipartUpload(t.Context(), &s3.CompleteMultipartUploadInput{
		Bucket: in, Key: k, UploadId: up.UploadId,
		MultipartUpload: &types.CompletedMultipartUpload{Parts: []types.CompletedPart{{ETag: part.ETag, PartNumber: aws.Int32(1)}}},
	})
	return err
}

// The last reported change of an object must be the stored one.
func TestChangeOrder(t *testing.T) {
	var r recorder
	s, err := newStore(r.onChange, inputBucket, outputBucket)
	if err != nil {
		t.Fatal(err)
	}
	const writers, rounds = 8, 50
	var wg sync.WaitGroup
	for w := range writers {
		wg.Go(func() {
			for i := range rounds {
				body := fmt.Sprintf("%d %d", w, i)
				if i%5 == 4 {
					_, err := s.DeleteObject(inputBucket, "in/k")
					if err != nil {
						t.Error(err)
					}
					continue
				}
				_, err := s.PutObject(inputBucket, "in/k", map[string]string{}, strings.NewReader(body), int64(len(body)), nil)
				if err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	for i := 1; i < len(r.changes); i++ {
		before, after := r.changes[i-1], r.changes[i]
		if after.order <= before.order {
			t.Fatalf("change %d has order %d after %d", i, after.order, before.order)
		}
		if after.existed == before.removed {
			t.Fatalf("change %d: existed is %v after removed was %v", i, after.existed, before.removed)
		}
	}
	last := r.changes[len(r.changes)-1]
	o, err := s.GetObject(inputBucket, "in/k", nil)
	if last.removed != (err != nil) {
		t.Fatalf("the last reported change is %+v, but the store says %v", last, err)
	}
	if err == nil {
		body, err := io.ReadAll(o.Contents)
		if sum := md5.Sum(body); err != nil || hex.EncodeToString(sum[:]) != last.etag {
			t.Errorf("the store has %q (%v), which is not the last reported change", body, err)
		}
	}
}
