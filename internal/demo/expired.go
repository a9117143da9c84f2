package demo

import (
	"io"
	"net/http"
	"strconv"
	"time"
)

// refuseExpired refuses presigned requests that begin too late, as S3 does.
func refuseExpired(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		q := r.URL.Query()
		signed, err := time.Parse("20060102T150405Z", q.Get("X-Amz-Date"))
		seconds, none := strconv.Atoi(q.Get("X-Amz-Expires"))
		if err == nil && none == nil && time.Since(signed) > time.Duration(seconds)*time.Second {
			w.WriteHeader(http.StatusForbidden)
			_, _ = io.WriteString(w, "<Error><Code>AccessDenied</Code><Message>Request has expired</Message></Error>") // or the caller has gone
			return
		}
		next.ServeHTTP(w, r)
	})
}
