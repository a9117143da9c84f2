//go:build unix

package root_test

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync"

	"github.com/rogpeppe/go-internal/testscript"
)

const alertsKey = "0123456789abcdef01234567"

// alertsReceiver keeps the messages with a valid signature.
type alertsReceiver struct {
	mu  sync.Mutex
	got []string // "began dead gray"
}

// alerts-receiver: starts a receiver of alerts at $ALERTS, whose secret is $ALERTS_SECRET.
func startAlertsReceiver(ts *testscript.TestScript, _ bool, _ []string) {
	r := &alertsReceiver{}
	srv := httptest.NewServer(r)
	ts.Defer(srv.Close)
	ts.Setenv("ALERTS", srv.URL)
	ts.Setenv("ALERTS_SECRET", "whsec_"+base64.StdEncoding.EncodeToString([]byte(alertsKey)))
	alertsReceivers.Store(srv.URL, r)
}

var alertsReceivers sync.Map // by URL

func (r *alertsReceiver) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	body, _ := io.ReadAll(req.Body)
	mac := hmac.New(sha256.New, []byte(alertsKey))
	fmt.Fprintf(mac, "%s.%s.%s", req.Header.Get("Webhook-Id"), req.Header.Get("Webhook-Timestamp"), body)
	var m struct {
		Type string
		Data struct{ Condition, Pipeline string }
	}
	if req.Header.Get("Webhook-Signature") != "v1,"+base64.StdEncoding.EncodeToString(mac.Sum(nil)) || json.Unmarshal(body, &m) != nil {
		w.WriteHeader(http.StatusUnauthorized)
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.got = append(r.got, m.Type+" "+m.Data.Condition+" "+m.Data.Pipeline)
}

func (r *alertsReceiver) count(message string) int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(slices.DeleteFunc(slices.Clone(r.got), func(s string) bool { return s != message }))
}

// alerted KIND CONDITION PIPELINE: waits until the receiver has got this message once; with !, it must
// not have got it yet.
func alerted(ts *testscript.TestScript, neg bool, args []string) {
	found, _ := alertsReceivers.Load(ts.Getenv("ALERTS"))
	r := found.(*alertsReceiver)
	message := fmt.Sprintf("pawl.alert.%s %s %s", args[0], args[1], args[2])
	switch {
	case neg && r.count(message) > 0:
		ts.Fatalf("got %s", message)
	case !neg && (!poll(func() bool { return r.count(message) > 0 }) || r.count(message) > 1):
		ts.Fatalf("got %q, want one %s", r.got, message)
	}
}
