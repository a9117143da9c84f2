package demo

import (
	"embed"
	"encoding/json"
	"io/fs"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"sync/atomic"
	"time"

	"github.com/pawlhq/pawl/files/filesapi"
)

//go:embed page
var page embed.FS

// pagePolicy lets the page use resources of this server only, without inline scripts and styles.
const pagePolicy = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self'; " +
	"base-uri 'none'; frame-ancestors 'none'; form-action 'none'"

// frontend serves the page, the services and the objects at a single origin.
type frontend struct {
	secret []byte // signs the tokens
	apis   func() []string
	turn   atomic.Uint32
}

// handler rejects requests of other pages, and accepts those of programs on this machine.
func (f *frontend) handler(store http.Handler) (http.Handler, error) {
	files, err := fs.Sub(page, "page")
	if err != nil {
		return nil, err
	}
	mux := http.NewServeMux()
	mux.Handle("/", withHeaders(http.FileServerFS(files), map[string]string{
		"Content-Security-Policy": pagePolicy, "Referrer-Policy": "no-referrer", "Cache-Control": "no-store",
	}))
	mux.HandleFunc("POST /token", f.token)
	// An uploader chooses the content type, so these headers prevent scripts at this origin.
	objects := withHeaders(verifySigned(store), map[string]string{"Content-Security-Policy": "sandbox"})
	mux.Handle("/"+filesBucket, objects)
	mux.Handle("/"+filesBucket+"/", objects)
	api := &httputil.ReverseProxy{Rewrite: f.rewrite, ErrorLog: discardLogger(), FlushInterval: -1}
	for _, path := range []string{"/v1/", "/graphql", "/openapi.yaml", "/schema.graphql"} {
		mux.Handle(path, api)
	}
	return localOnly(redirectToAddress(http.NewCrossOriginProtection().Handler(mux)), true), nil
}

// redirectToAddress redirects other names of this machine to the address in signed URLs, so that
// all requests have the same origin.
func redirectToAddress(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		here, ok := r.Context().Value(http.LocalAddrContextKey).(net.Addr)
		if ok && r.Host != here.String() {
			http.Redirect(w, r, "http://"+here.String()+"/", http.StatusTemporaryRedirect)
			return
		}
		next.ServeHTTP(w, r)
	})
}

func withHeaders(next http.Handler, headers map[string]string) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("X-Content-Type-Options", "nosniff")
		w.Header().Set("Cross-Origin-Resource-Policy", "same-origin")
		for name, value := range headers {
			w.Header().Set(name, value)
		}
		next.ServeHTTP(w, r)
	})
}

func (f *frontend) rewrite(p *httputil.ProxyRequest) {
	host := "127.0.0.1:0" // no server listens there, so the client gets 502
	if apis := f.apis(); len(apis) > 0 {
		host = apis[int(f.turn.Add(1))%len(apis)]
	}
	p.SetURL(&url.URL{Scheme: "http", Host: host})
}

const tokenLife = 10 * time.Minute

// The handler has already rejected requests of other origins.
func (f *frontend) token(w http.ResponseWriter, _ *http.Request) {
	token, err := f.issue("page", tokenLife)
	if err != nil {
		http.Error(w, "cannot issue a token", http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	_ = json.NewEncoder(w).Encode(map[string]any{"token": token, "entity": filesEntity}) // the client may have disconnected
}

func (f *frontend) issue(subject string, life time.Duration) (string, error) {
	scopes := []string{"read:" + filesEntity, "write:" + filesEntity}
	return filesapi.SignToken(f.secret, filesapi.TokenSpec{Subject: subject, Scopes: scopes, Life: life})
}
