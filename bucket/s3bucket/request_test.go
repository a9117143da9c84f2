package s3bucket_test

import (
	"net/http"
	"testing"
	"time"

	"github.com/pawlhq/pawl/bucket"
)

// The skew is certain: it is not larger than the difference of the clocks, and a slow response or the
// seconds of the Date header do not look like skew.
func TestRequestsAreReported(t *testing.T) {
	var off time.Duration
	var status int
	s := serve(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Date", time.Now().Add(off).UTC().Format(http.TimeFormat))
		w.WriteHeader(status)
	})
	var got []bucket.Request
	s.OnRequest(func(r bucket.Request) { got = append(got, r) })
	for _, c := range []struct {
		status   int
		off      time.Duration
		dated    bool
		min, max time.Duration
	}{
		{204, 0, true, 0, 0},
		{403, time.Hour, true, time.Hour - time.Minute, time.Hour},
		{404, -time.Hour, true, -time.Hour, -time.Hour + time.Minute},
		{502, time.Hour, false, 0, 0}, // the Date may be that of a gateway
	} {
		got, off, status = nil, c.off, c.status
		_ = s.Delete(t.Context(), ref, bucket.Condition{})
		if len(got) != 1 {
			t.Fatalf("status %d: %d requests are reported", c.status, len(got))
		}
		if r := got[0]; r.Operation != "DeleteObject" || r.Status != c.status || r.Dated != c.dated || r.Skew < c.min || r.Skew > c.max {
			t.Errorf("status %d, a clock that is off by %v: %+v", c.status, c.off, r)
		}
	}
}

func TestRequestWithoutResponseIsReported(t *testing.T) {
	s := serve(t, func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) })
	var got []bucket.Request
	s.OnRequest(func(r bucket.Request) { got = append(got, r) })
	_ = s.Delete(t.Context(), ref, bucket.Condition{})
	if len(got) != 1 || got[0] != (bucket.Request{Operation: "DeleteObject"}) {
		t.Errorf("reported %+v", got)
	}
}
