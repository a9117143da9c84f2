package s3bucket_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pawlhq/pawl/bucket"
	"github.com/pawlhq/pawl/bucket/s3bucket"
	"github.com/pawlhq/pawl/event"
)

func TestKeysAreSentExactly(t *testing.T) {
	var got string
	s := serve(t, func(w http.ResponseWriter, r *http.Request) {
		got, _, _ = strings.Cut(r.RequestURI, "?")
		w.WriteHeader(http.StatusOK)
	})
	for key, path := range map[string]string{
		"..":        "/b/..",
		"../x":      "/b/../x",
		"a/./b":     "/b/a/./b",
		"/lead":     "/b//lead",
		"//":        "/b///",
		"a//b/":     "/b/a//b/",
		"a b+c%2B":  "/b/a%20b%2Bc%252B",
		"a\nb":      "/b/a%0Ab",
		"\xff":      "/b/%FF",
		"é?x#y":     "/b/%C3%A9%3Fx%23y",
		"a:b@c=d&e": "/b/a%3Ab%40c%3Dd%26e",
	} {
		if _, err := s.Head(t.Context(), event.Object{Bucket: "b", Key: key}); err != nil {
			t.Errorf("Head %q: %v", key, err)
		}
		if got != path {
			t.Errorf("key %q was sent as %s, want %s", key, got, path)
		}
	}
}

func TestWriteHeaders(t *testing.T) {
	var got http.Header
	s := serve(t, func(_ http.ResponseWriter, r *http.Request) { got = r.Header })
	for _, tc := range []struct {
		o    bucket.Object
		c    bucket.Condition
		want map[string]string
	}{
		{
			bucket.Object{Body: strings.NewReader("x"), Size: 1},
			bucket.Condition{IfMatch: "e"},
			map[string]string{
				"If-Match": `"e"`,
				// The signed digest of "x" lets the store reject a truncated body.
				"X-Amz-Content-Sha256": "2d711642b726b04401627ca9fbac32f5c8530fb1903cc4db02258717921a4881",
			},
		},
		{
			bucket.Object{Body: stream{strings.NewReader("x")}, Size: 1, ContentType: "text/plain", Metadata: map[string]string{"pawl-nonce": "n"}},
			bucket.Condition{IfAbsent: true},
			map[string]string{
				"If-None-Match": "*", "X-Amz-Content-Sha256": "UNSIGNED-PAYLOAD",
				"Content-Type": "text/plain", "X-Amz-Meta-Pawl-Nonce": "n",
			},
		},
	} {
		if _, err := s.Put(t.Context(), ref, tc.o, tc.c); err != nil {
			t.Fatal(err)
		}
		for name, value := range tc.want {
			if got.Get(name) != value {
				t.Errorf("%s: %q, want %q", name, got.Get(name), value)
			}
		}
		for name := range got {
			if strings.Contains(name, "Checksum") || strings.Contains(name, "Trailer") {
				t.Errorf("%s is sent: not every store knows it", name)
			}
		}
	}
}

type stream struct{ r *strings.Reader }

func (s stream) Read(p []byte) (int, error) { return s.r.Read(p) }

func TestListing(t *testing.T) {
	for _, tc := range []struct {
		name, answer string
		want         []string
		err          error
	}{
		{"encoded", "<EncodingType>url</EncodingType><Contents><Key>a+b%2Bc/%FF%0A</Key></Contents>", []string{"a b+c/\xff\n"}, nil},
		{"raw", "<Contents><Key>a+b%2Bc</Key></Contents>", []string{"a+b%2Bc"}, nil},
		{"badly encoded", "<EncodingType>url</EncodingType><Contents><Key>%zz</Key></Contents>", nil, bucket.ErrUnavailable},
		{"cut off", "<IsTruncated>true</IsTruncated><Contents><Key>a</Key></Contents>", []string{"a"}, bucket.ErrUnavailable},
	} {
		t.Run(tc.name, func(t *testing.T) {
			s := serve(t, func(w http.ResponseWriter, _ *http.Request) {
				fmt.Fprintf(w, "<ListBucketResult>%s</ListBucketResult>", tc.answer)
			})
			var got []string
			var last error
			for info, err := range s.List(t.Context(), "b", "", "") {
				if last = err; err == nil {
					got = append(got, info.Key)
				}
			}
			want(t, "List", last, tc.err)
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("keys (-want +got):\n%s", diff)
			}
		})
	}
}

func TestNoListing(t *testing.T) {
	t.Setenv("AWS_MAX_ATTEMPTS", "1")
	for answer, says := range map[string]string{
		"<!doctype html>\n<html><body>Welcome</body></html>": `"html"`,
		"<ListAllMyBucketsResult/>":                          `"ListAllMyBucketsResult"`,
		"":                                                   "no XML element",
		"{}":                                                 "no XML element",
		strings.Repeat(" ", 64<<10) + "<ListBucketResult/>": "no XML element",
		"<": "",
	} {
		s := serve(t, func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, answer) })
		what := fmt.Sprintf("%.60q", answer)
		var last error
		for _, err := range s.List(t.Context(), "b", "", "") {
			last = err
		}
		want(t, "List of "+what, last, bucket.ErrUnavailable)
		if last == nil || !strings.Contains(last.Error(), says) {
			t.Errorf("List of %s = %v, want it to say %q", what, last, says)
		}
		want(t, "Check of "+what, s.Check(t.Context(), "b"), bucket.ErrUnavailable)
	}
}

func TestCheck(t *testing.T) {
	for code, kind := range map[string]error{"NoSuchBucket": bucket.ErrNoBucket, "AccessDenied": bucket.ErrDenied} {
		s := serve(t, func(w http.ResponseWriter, _ *http.Request) { refuse(w, 403, code) })
		err := s.Check(t.Context(), "photos")
		want(t, "Check", err, kind)
		if !strings.Contains(err.Error(), "s3://photos") || !strings.Contains(err.Error(), "(c") {
			t.Errorf("Check = %v, want it to name the bucket and say what to do", err)
		}
	}
	s := serve(t, func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "<ListBucketResult/>") })
	want(t, "Check of a good bucket", s.Check(t.Context(), "photos"), nil)
}

func TestConfiguration(t *testing.T) {
	for name, c := range map[string]s3bucket.Config{
		"half a key":       {Region: "r", AccessKey: "a"},
		"no scheme":        {Endpoint: "127.0.0.1:9000"},
		"another scheme":   {Endpoint: "ftp://127.0.0.1"},
		"password in it":   {Endpoint: "http://me:hunter2@127.0.0.1"},
		"not a URL at all": {Endpoint: "http://me:hunter2@%zz"},
		"nothing to sign":  {},
	} {
		t.Run(name, func(t *testing.T) {
			isolate(t)
			s, err := s3bucket.New(t.Context(), c)
			if err == nil || s != nil || strings.Contains(err.Error(), "hunter2") {
				t.Errorf("New = %v, %v, want an error without secrets", s, err)
			}
		})
	}
}

// Nothing was sent, so the result is not ambiguous.
func TestNoCredentials(t *testing.T) {
	isolate(t)
	s, err := s3bucket.New(t.Context(), s3bucket.Config{Endpoint: "http://127.0.0.1:1"})
	if err != nil {
		t.Fatal(err)
	}
	_, err = s.Put(t.Context(), ref, bucket.Object{Body: strings.NewReader("x"), Size: 1}, bucket.Condition{})
	want(t, "Put", err, bucket.ErrDenied)
	_, err = s.Head(t.Context(), ref)
	want(t, "Head", err, bucket.ErrDenied)
}

// isolate hides the credentials and the region of the user.
func isolate(t *testing.T) {
	t.Helper()
	for _, name := range []string{
		"AWS_REGION", "AWS_DEFAULT_REGION", "AWS_PROFILE", "AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY",
		"AWS_WEB_IDENTITY_TOKEN_FILE", "AWS_CONTAINER_CREDENTIALS_RELATIVE_URI", "AWS_CONTAINER_CREDENTIALS_FULL_URI", "AWS_ENDPOINT_URL",
	} {
		t.Setenv(name, "")
	}
	t.Setenv("AWS_EC2_METADATA_DISABLED", "true")
	t.Setenv("AWS_CONFIG_FILE", t.TempDir()+"/none")
	t.Setenv("AWS_SHARED_CREDENTIALS_FILE", t.TempDir()+"/none")
}
