package s3bucket_test

import (
	"bytes"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/google/go-cmp/cmp"

	"github.com/pawlhq/pawl/bucket"
	"github.com/pawlhq/pawl/bucket/s3bucket"
	"github.com/pawlhq/pawl/event"
	"github.com/pawlhq/pawl/proof/servertest"
)

func copyTo(t *testing.T, s *s3bucket.Store, m bucket.CopyMethod, from bucket.Source, ref event.Object, size int, c bucket.Condition) error {
	t.Helper()
	o := bucket.Object{Size: int64(size), ContentType: "text/plain", Metadata: map[string]string{"pawl-nonce": "n"}}
	_, err := s.Copy(t.Context(), m, from, ref, o, c)
	return err
}

func TestCopyOfManyParts(t *testing.T) {
	servertest.Each(t, servertest.Options{}, func(t *testing.T, srv *servertest.Server) {
		s, b := open(t, srv, srv.SecretKey), srv.NewBucket(t)
		s.CopyPartsOf(5 << 20)
		content := make([]byte, 11<<20)
		_, _ = rand.NewChaCha8([32]byte{7}).Read(content)
		from := bucket.Source{Ref: event.Object{Bucket: b, Key: "in"}}
		var err error
		if from.ETag, err = s.Put(t.Context(), from.Ref, bucket.Object{Body: bytes.NewReader(content), Size: int64(len(content))}, bucket.Condition{}); err != nil {
			t.Fatal(err)
		}
		out := event.Object{Bucket: b, Key: "out"}
		absent := bucket.Condition{IfAbsent: true}
		if err := copyTo(t, s, bucket.CopyParts, from, out, len(content), absent); err != nil {
			t.Fatal(err)
		}
		_, body, err := s.Get(t.Context(), out)
		if err != nil {
			t.Fatal(err)
		}
		defer body.Close()
		if got, err := io.ReadAll(body); err != nil || !bytes.Equal(got, content) {
			t.Errorf("the copy has %d bytes of %d, or others: %v", len(got), len(content), err)
		}
		want(t, "Copy over an existing object", copyTo(t, s, bucket.CopyParts, from, out, len(content), absent), bucket.ErrPrecondition)
		from.ETag = strings.Repeat("0", 32)
		want(t, "Copy of a changed source", copyTo(t, s, bucket.CopyParts, from, event.Object{Bucket: b, Key: "other"}, len(content), absent), bucket.ErrPrecondition)
		left, err := srv.Client().ListMultipartUploads(t.Context(), &s3.ListMultipartUploadsInput{Bucket: &b})
		if err != nil || len(left.Uploads) > 0 {
			t.Errorf("uploads are left: %v, %v", left, err)
		}
	})
}

func TestCopyHeaders(t *testing.T) {
	var got http.Header
	s := serve(t, func(w http.ResponseWriter, r *http.Request) {
		got = r.Header
		fmt.Fprint(w, `<CopyObjectResult><ETag>"e"</ETag></CopyObjectResult>`)
	})
	from := bucket.Source{Ref: event.Object{Bucket: "in", Key: "a b+c%/é", VersionID: "v+1"}, ETag: "old"}
	if err := copyTo(t, s, bucket.CopyWhole, from, ref, 1, bucket.Condition{IfMatch: "now"}); err != nil {
		t.Fatal(err)
	}
	for name, value := range map[string]string{
		"X-Amz-Copy-Source": "in/a%20b%2Bc%25/%C3%A9?versionId=v%2B1", "X-Amz-Copy-Source-If-Match": `"old"`,
		"If-Match": `"now"`, "If-None-Match": "", "X-Amz-Metadata-Directive": "REPLACE", "X-Amz-Tagging-Directive": "REPLACE",
		"X-Amz-Tagging": "", "Content-Type": "text/plain", "X-Amz-Meta-Pawl-Nonce": "n",
	} {
		if got.Get(name) != value {
			t.Errorf("%s: %q, want %q", name, got.Get(name), value)
		}
	}
}

// A multipart copy has four requests: begin, part, complete, abort.
func TestCopyAnswers(t *testing.T) {
	t.Setenv("AWS_MAX_ATTEMPTS", "1") // retries take seconds
	for _, tc := range []struct {
		status        int
		code          string
		whole, ifThat error // ifThat: with IfMatch
		begin, part   error
	}{
		{404, "NoSuchKey", bucket.ErrPrecondition, bucket.ErrPrecondition, bucket.ErrPrecondition, bucket.ErrPrecondition},
		{404, "NoSuchUpload", bucket.ErrUnclear, bucket.ErrUnclear, bucket.ErrUnavailable, bucket.ErrUnavailable},
		{404, "NoSuchBucket", bucket.ErrNoBucket, bucket.ErrNoBucket, bucket.ErrNoBucket, bucket.ErrNoBucket},
		{412, "PreconditionFailed", bucket.ErrPrecondition, bucket.ErrPrecondition, bucket.ErrPrecondition, bucket.ErrPrecondition},
		{409, "ConditionalRequestConflict", bucket.ErrConflict, bucket.ErrConflict, bucket.ErrUnavailable, bucket.ErrUnavailable},
		{403, "AccessDenied", bucket.ErrDenied, bucket.ErrDenied, bucket.ErrDenied, bucket.ErrDenied},
		{501, "NotImplemented", bucket.ErrInvalid, bucket.ErrInvalid, bucket.ErrInvalid, bucket.ErrInvalid},
		{503, "SlowDown", bucket.ErrUnclear, bucket.ErrUnclear, bucket.ErrUnavailable, bucket.ErrUnavailable},
		// S3 may send status 200 before it has finished the copy.
		{200, "InternalError", bucket.ErrUnclear, bucket.ErrUnclear, bucket.ErrUnavailable, bucket.ErrUnavailable},
	} {
		t.Run(fmt.Sprint(tc.status, tc.code), func(t *testing.T) {
			steps := []string{}
			fail := ""
			s := serve(t, func(w http.ResponseWriter, r *http.Request) {
				step := copyStep(r)
				steps = append(steps, step)
				if step == fail {
					refuse(w, tc.status, tc.code)
					return
				}
				fmt.Fprint(w, map[string]string{
					"begin": "<InitiateMultipartUploadResult><UploadId>u</UploadId></InitiateMultipartUploadResult>",
					"part":  `<CopyPartResult><ETag>"p"</ETag></CopyPartResult>`,
				}[step])
			})
			from := bucket.Source{Ref: event.Object{Bucket: "in", Key: "k"}, ETag: "e"}
			for _, step := range []struct {
				fails string
				c     bucket.Condition
				want  error
				steps []string
			}{
				{"whole", bucket.Condition{IfAbsent: true}, tc.whole, []string{"whole"}},
				{"whole", bucket.Condition{IfMatch: "e"}, tc.ifThat, []string{"whole"}},
				{"begin", bucket.Condition{IfMatch: "e"}, tc.begin, []string{"begin"}},
				{"part", bucket.Condition{IfMatch: "e"}, tc.part, []string{"begin", "part", "abort"}},
				{"complete", bucket.Condition{IfMatch: "e"}, tc.ifThat, []string{"begin", "part", "complete", "abort"}},
			} {
				steps, fail = []string{}, step.fails
				method := bucket.CopyParts
				if step.fails == "whole" {
					method = bucket.CopyWhole
				}
				want(t, "Copy that fails at "+fail, copyTo(t, s, method, from, ref, 1, step.c), step.want)
				if diff := cmp.Diff(step.steps, steps); diff != "" {
					t.Errorf("requests of a copy that fails at %s (-want +got):\n%s", fail, diff)
				}
			}
		})
	}
}

func copyStep(r *http.Request) string {
	query := r.URL.Query()
	switch {
	case query.Has("uploads"):
		return "begin"
	case query.Has("partNumber"):
		return "part"
	case r.Method == http.MethodDelete:
		return "abort"
	case query.Has("uploadId"):
		return "complete"
	}
	return "whole"
}
