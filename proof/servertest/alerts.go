package servertest

import (
	"cmp"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
)

const alertsKey = "0123456789abcdef01234567"

// AlertsSecret is the secret of Pawl's alerts for an [AlertReceiver].
var AlertsSecret = "whsec_" + base64.StdEncoding.EncodeToString([]byte(alertsKey))

// AlertReceiver keeps Pawl's alerts. It rejects wrong signatures, and messages whose ID is not stable.
type AlertReceiver struct {
	mu  sync.Mutex
	ids map[string]string // of messages, and the reverse
	got []string          // "/path began dead gray"
}

// ServeHTTP receives a message.
func (r *AlertReceiver) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	body, _ := io.ReadAll(req.Body)
	id, mac := req.Header.Get("Webhook-Id"), hmac.New(sha256.New, []byte(alertsKey))
	fmt.Fprintf(mac, "%s.%s.%s", id, req.Header.Get("Webhook-Timestamp"), body)
	var m struct {
		Type, Timestamp string
		Data            struct{ Condition, Pipeline, Source, Archive string }
	}
	valid := req.Header.Get("Webhook-Signature") == "v1,"+base64.StdEncoding.EncodeToString(mac.Sum(nil)) && json.Unmarshal(body, &m) == nil
	message := strings.Join([]string{req.URL.Path, strings.TrimPrefix(m.Type, "pawl.alert."), m.Data.Condition, m.Data.Pipeline + m.Data.Source + m.Data.Archive}, " ")
	r.mu.Lock()
	defer r.mu.Unlock()
	once := message + " " + m.Timestamp
	if !valid || cmp.Or(r.ids[once], id) != id || cmp.Or(r.ids[id], once) != once {
		w.WriteHeader(http.StatusUnauthorized)
		return
	}
	if r.ids == nil {
		r.ids = map[string]string{}
	}
	r.ids[once], r.ids[id] = id, once
	r.got = append(r.got, message)
}

// Count returns the number of times that a message arrived. A message is "/path began dead gray".
func (r *AlertReceiver) Count(message string) int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(slices.DeleteFunc(slices.Clone(r.got), func(s string) bool { return s != message }))
}
