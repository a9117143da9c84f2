package s3bucket_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/s3"
	smithyhttp "github.com/aws/smithy-go/transport/http"

	"github.com/pawlhq/pawl/bucket"
	"github.com/pawlhq/pawl/proof/servertest"
)

// MinIO cannot list an object that was put with a certain header.
func TestListNamesUnlistable(t *testing.T) {
	srv := servertest.MinIO(t, servertest.Options{})
	name := srv.NewBucket(t)
	put := func(key string, o ...func(*s3.Options)) {
		t.Helper()
		if _, err := srv.Client().PutObject(t.Context(), &s3.PutObjectInput{Bucket: &name, Key: &key, Body: strings.NewReader("hello")}, o...); err != nil {
			t.Fatal(err)
		}
	}
	broken := s3.WithAPIOptions(smithyhttp.SetHeaderValue("X-Minio-Replication-Encrypted-Multipart", "1"))
	bad := []string{"a/0 first", "a/019a-7f", "a/019a-80", "a/z"}
	var want []string
	for n := range 9 {
		want = append(want, fmt.Sprintf("a/019a-7%d", n))
	}
	for _, key := range want {
		put(key)
	}
	for _, key := range bad {
		put(key, broken)
	}
	put("b")
	s := open(t, srv, srv.SecretKey)
	if err := s.Check(t.Context(), name); err != nil {
		t.Errorf("the first object cannot be listed: %v", err)
	}
	var good, named []string
	for info, err := range s.List(t.Context(), name, "", "") {
		switch {
		case err == nil:
			good = append(good, info.Key)
		case errors.Is(err, bucket.ErrUnlistable) && strings.Contains(err.Error(), strings.Split(info.Key, " ")[0]):
			named = append(named, info.Key)
		default:
			t.Fatal(err)
		}
	}
	if want := append(want, "b"); !slices.Equal(good, want) || !slices.Equal(named, bad) {
		t.Errorf("listed %q, and named %q: want %q and %q", good, named, want, bad)
	}
	put("ä", broken)
	var last error
	for _, err := range s.List(t.Context(), name, "", "b") {
		last = err
	}
	if !errors.Is(last, bucket.ErrUnlistable) || !strings.Contains(last.Error(), "begins with s3://"+name+"/") {
		t.Errorf("%v: want the beginning of a key that is not ASCII", last)
	}
}
