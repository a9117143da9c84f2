package webhooksource_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/pawlhq/pawl/source/webhooksource"
)

// A web page can point its own host name to this machine; a post to that name is not cross-origin.
func TestForeignHostNamesAreRejected(t *testing.T) {
	for _, c := range []struct {
		token, host string
		want        int
	}{
		{"", "evil.example:8081", http.StatusForbidden},
		{"", "localhost:8081", http.StatusOK},
		{"", "[::1]:8081", http.StatusOK},
		{"Bearer x", "pawl.internal:8081", http.StatusOK},
	} {
		e := serve(t, webhooksource.Config{Token: c.token}, ackAll{})
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, e.url, strings.NewReader(payload))
		if err != nil {
			t.Fatal(err)
		}
		req.Host = c.host
		if c.token != "" {
			req.Header.Set("Authorization", c.token)
		}
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		_ = resp.Body.Close()
		if resp.StatusCode != c.want {
			t.Errorf("host %s, token %q: answered %d, want %d", c.host, c.token, resp.StatusCode, c.want)
		}
	}
}
