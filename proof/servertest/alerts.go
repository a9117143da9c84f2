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
	"strconv"
	"strings"
	"sync"
	"time"
)

const alertsKey = "0123456789abcdef01234567"

// AlertsSecret is the secret of Pawl's alerts for an [AlertReceiver].
var AlertsSecret = "whsec_" + base64.StdEncoding.EncodeToString([]byte(alertsKey))

// AlertReceiver keeps Pawl's alerts. It rejects invalid messages, and those whose ID is not stable. It verifies
// signatures without the library that makes them.
type AlertReceiver struct {
	mu  sync.Mutex
	ids map[string]string // of messages, and the reverse
	got []string          // "/path began dead pipeline gray"
}

// ServeHTTP receives a message.
func (r *AlertReceiver) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	body, _ := io.ReadAll(req.Body)
	id, at, mac := req.Header.Get("Webhook-Id"), req.Header.Get("Webhook-Timestamp"), hmac.New(sha256.New, []byte(alertsKey))
	fmt.Fprintf(mac, "%s.%s.%s", id, at, body)
	var m struct {
		Type      string
		Timestamp time.Time
		Data      map[string]string
	}
	seconds, _ := strconv.ParseInt(at, 10, 64)
	valid := req.Header.Get("Webhook-Signature") == "v1,"+base64.StdEncoding.EncodeToString(mac.Sum(nil)) && json.Unmarshal(body, &m) == nil &&
		time.Since(time.Unix(seconds, 0)).Abs() < 5*time.Minute && !m.Timestamp.IsZero() && m.Data["since"] != "" && m.Data["summary"] != ""
	message := req.URL.Path + " " + strings.TrimPrefix(m.Type, "pawl.alert.") + " " + m.Data["condition"]
	for _, kind := range []string{"pipeline", "source", "archive"} {
		if m.Data[kind] != "" {
			message += " " + kind + " " + m.Data[kind]
		}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	once := message + m.Timestamp.String()
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

// Count returns the number of times that a message arrived. A message is "/path began dead pipeline gray".
func (r *AlertReceiver) Count(message string) int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(slices.DeleteFunc(slices.Clone(r.got), func(s string) bool { return s != message }))
}

// Take returns the messages since its last call, sorted.
func (r *AlertReceiver) Take() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	got := r.got
	r.got = nil
	slices.Sort(got)
	return got
}
