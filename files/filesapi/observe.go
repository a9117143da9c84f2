package filesapi

import (
	"net/http"
	"time"
)

func (s *server) observe(next http.Handler, mux *http.ServeMux) http.Handler {
	if s.Observe == nil {
		return next
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, route := mux.Handler(r)
		if route == "/" {
			route = ""
		}
		began, sent := time.Now(), &statusWriter{w, http.StatusOK}
		next.ServeHTTP(sent, r)
		s.Observe(route, sent.status, time.Since(began))
	})
}

type statusWriter struct {
	http.ResponseWriter
	status int
}

func (w *statusWriter) WriteHeader(status int) {
	w.status = status
	w.ResponseWriter.WriteHeader(status)
}

// Unwrap is for [http.ResponseController].
func (w *statusWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }
