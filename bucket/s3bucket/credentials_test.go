package s3bucket_test

import (
	"errors"
	"net/http"
	"strings"
	"testing"

	"github.com/pawlhq/pawl/bucket"
	"github.com/pawlhq/pawl/bucket/s3bucket"
	"github.com/pawlhq/pawl/event"
)

func TestCredentials(t *testing.T) {
	for code, want := range map[string]bool{
		"ExpiredToken": true, "ExpiredTokenException": true, "InvalidToken": true, "InvalidClientTokenId": true,
		"TokenRefreshRequired": true, "InvalidAccessKeyId": true, "SignatureDoesNotMatch": true,
		"AccessDenied": false, "AuthorizationHeaderMalformed": false, "PermanentRedirect": false, "": false,
	} {
		for _, status := range []int{400, 403} {
			if status == 400 && code == "" {
				continue
			}
			s := serve(t, func(w http.ResponseWriter, _ *http.Request) { refuse(w, status, code) })
			every(t, s, func(what string, err error) {
				if errors.Is(err, bucket.ErrCredentials) != want {
					t.Errorf("%s of %d %q = %v, is ErrCredentials: %t, want %t", what, status, code, err, !want, want)
				}
				if want && (!errors.Is(err, bucket.ErrDenied) || !strings.Contains(err.Error(), "(renew them")) {
					t.Errorf("%s of %q = %v, want it to be ErrDenied and to say what to do", what, code, err)
				}
			})
		}
	}
}

func TestNoCredentialsAreNoDenialOfTheObject(t *testing.T) {
	isolate(t)
	s, err := s3bucket.New(t.Context(), s3bucket.Config{Endpoint: "http://127.0.0.1:1"})
	if err != nil {
		t.Fatal(err)
	}
	every(t, s, func(what string, err error) { want(t, what, err, bucket.ErrCredentials) })
}

func every(t *testing.T, s *s3bucket.Store, check func(what string, err error)) {
	t.Helper()
	_, err := s.Head(t.Context(), ref)
	check("Head", err)
	_, _, err = s.Get(t.Context(), ref)
	check("Get", err)
	_, err = s.Put(t.Context(), ref, bucket.Object{Body: strings.NewReader("x"), Size: 1}, bucket.Condition{})
	check("Put", err)
	check("Delete", s.Delete(t.Context(), ref, bucket.Condition{}))
	check("Check", s.Check(t.Context(), "b"))
}

// Without a version, a 405 does not mean a delete marker.
func TestDeleteMarkerOfAVersion(t *testing.T) {
	s := serve(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("X-Amz-Delete-Marker", "true")
		refuse(w, http.StatusMethodNotAllowed, "MethodNotAllowed")
	})
	for version, kind := range map[string]error{"v1": bucket.ErrNotFound, "": bucket.ErrInvalid} {
		of := event.Object{Bucket: "b", Key: "k", VersionID: version}
		_, err := s.Head(t.Context(), of)
		want(t, "Head of version "+version, err, kind)
		_, _, err = s.Get(t.Context(), of)
		want(t, "Get of version "+version, err, kind)
		if errors.Is(err, bucket.ErrDenied) {
			t.Errorf("Get of version %s = %v: a denial", version, err)
		}
	}
}
