// Package alerts posts messages about conditions that need an operator, in the format of
// https://www.standardwebhooks.com: when a condition begins, every hour while it lasts, and when it ends.
//
// A register of the ledger has the alerts, and is written before and after each message. Another process
// therefore continues after a crash. It may send the last message again, with the same webhook-id.
package alerts

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/go-json-experiment/json/jsontext"
	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"

	"github.com/pawlhq/pawl/internal/format"
	"github.com/pawlhq/pawl/ledger"
)

// Config configures alerts. URL, Secret, Name and Ledger are required.
type Config struct {
	// URL receives the messages. Logs omit its query.
	URL string
	// Secret signs the messages: "whsec_" and at least 24 bytes in base64.
	Secret string
	// Name distinguishes the alerts of pipelines from those of archives.
	Name   string
	Ledger *ledger.Rows
	// OldestAfter is the age from which an unsettled row is an alert. Default 15 min.
	OldestAfter time.Duration
	// SilentAfter has the time of each source after which its silence is an alert, at least a minute.
	SilentAfter map[string]time.Duration
	// LastDelivery returns the time of a source's last delivery in this process. Zero: none.
	LastDelivery func(source string) time.Time
	Logger       *slog.Logger // default slog.Default()
}

// Alerts sends alerts.
type Alerts struct {
	Config
	signer  *standardwebhooks.Webhook
	client  *http.Client
	created time.Time
	wake    chan struct{}

	failures int // of the receiver since its last success
	retryAt  time.Time

	mu    sync.Mutex
	marks map[string]mark // by register, not published yet
}

// alert is a condition that lasts, or that has ended and whose end was not sent. The ledger stores it: do
// not change the names of fields.
type alert struct {
	Condition string    `json:"condition"` // oldest, dead, silence, losses, brake or gap
	Kind      string    `json:"kind"`      // pipeline, source or archive
	Subject   string    `json:"subject"`   // its name
	Since     time.Time `json:"since"`
	Ended     time.Time `json:"ended,omitzero"`
	Summary   string    `json:"summary"`
	Sent      int       `json:"sent,omitzero"` // 0: nothing; otherwise 1 plus the hour of the last message

	Unknown jsontext.Value `json:",embed"` // of a newer version of Pawl

	action      string
	onlyIfBegun bool // the condition does not begin, but lasts if it has begun
}

func (a *alert) key() string { return a.Condition + " " + a.Kind + " " + a.Subject }

const (
	sendTimeout = 10 * time.Second // for one message
	tickTimeout = 30 * time.Second // for all messages of a tick
	maxBackOff  = 10 * time.Minute
	maxAlerts   = 100 // that are stored, so that they fit into a register
	unseenAfter = 24  // hours after which the alert of a subject without a process ends
)

// state is the register that has the alerts.
type state struct {
	ledger.Register
	stored
}

type stored struct {
	format.Header
	All []alert `json:"alerts"`
}

func (a *Alerts) read(ctx context.Context) (s state, err error) {
	if s.Register, err = a.Ledger.ReadRegister(ctx, "alerts/state/"+a.Name); err == nil && len(s.Value) > 0 {
		err = format.Decode(s.Value, &s.stored)
	}
	return s, err
}

func (a *Alerts) save(ctx context.Context, s *state) error {
	value, err := format.Encode(&s.stored)
	if err != nil || bytes.Equal(value, s.Value) || len(s.All) == 0 && len(s.Value) == 0 {
		return err
	}
	s.Version, err = a.Ledger.WriteRegister(ctx, s.Name, s.Version, value)
	s.Value = value
	return err
}

// check finds the conditions that last, and sends the messages that are due. It logs errors, because the
// work does not depend on alerts. Alerts that are not of this process wait for another one.
func (a *Alerts) check(ctx context.Context, own func(*alert) bool, find func(context.Context, *state) ([]alert, error)) {
	s, err := a.read(ctx)
	var lasting []alert
	if err == nil {
		lasting, err = find(ctx, &s)
	}
	if err == nil {
		now := time.Now().UTC().Truncate(time.Millisecond)
		var left int
		if s.All, left = merge(s.All, lasting, own, now); left > 0 {
			a.Logger.Warn("too many alerts; some wait until others end", "waiting", left)
		}
		if err = a.save(ctx, &s); err == nil && !now.Before(a.retryAt) {
			err = a.sendDue(ctx, &s, own, now)
		}
	}
	if err != nil && ctx.Err() == nil {
		a.Logger.Warn("alerts are late; trying again in a minute or later", "error", err)
	}
}

func (a *Alerts) sendDue(ctx context.Context, s *state, own func(*alert) bool, now time.Time) error {
	sending, stop := context.WithTimeout(ctx, tickTimeout)
	defer stop()
	for i := 0; i < len(s.All); {
		kind := s.All[i].next(now)
		if kind == "" || kind == "continues" && !own(&s.All[i]) {
			i++
			continue
		}
		if err := a.send(sending, &s.All[i], kind, now); err != nil {
			a.failures++
			a.retryAt = now.Add(min(time.Minute<<min(a.failures-1, 4), maxBackOff))
			return fmt.Errorf("the alert %s: %w", s.All[i].key(), err)
		}
		a.failures = 0
		s.All[i].Sent = s.All[i].hour(now) + 1
		if kind == "ended" {
			s.All = slices.Delete(s.All, i, i+1)
		}
		if err := a.save(ctx, s); err != nil {
			return err
		}
	}
	return nil
}

// merge applies the present conditions to the stored alerts. A condition that begins again waits until its
// previous end was sent. left is the number of conditions for which there is no room.
func merge(stored, lasting []alert, own func(*alert) bool, now time.Time) (_ []alert, left int) {
	for i := range stored {
		s := &stored[i]
		if !slices.ContainsFunc(lasting, func(l alert) bool { return l.key() == s.key() }) && s.Ended.IsZero() &&
			(own(s) || s.hour(now) >= s.Sent+unseenAfter) {
			s.Ended = now
		}
	}
	for _, l := range lasting {
		i := slices.IndexFunc(stored, func(s alert) bool { return s.key() == l.key() })
		switch {
		case i >= 0 && stored[i].Ended.IsZero():
			stored[i].Summary, stored[i].action = l.Summary, l.action
		case i < 0 && !l.onlyIfBegun && len(stored) >= maxAlerts:
			left++
		case i < 0 && !l.onlyIfBegun:
			l.Since = now
			stored = append(stored, l)
		}
	}
	return stored, left
}

func (a *alert) hour(now time.Time) int { return int(now.Sub(a.Since) / time.Hour) }

// next returns the kind of the message that is due, or "".
func (a *alert) next(now time.Time) string {
	switch {
	case a.Sent == 0:
		return "began"
	case !a.Ended.IsZero():
		return "ended"
	case a.hour(now) >= a.Sent:
		return "continues"
	}
	return ""
}

// send posts one message. Its ID depends only on the alert, its beginning, the kind and the hour.
func (a *Alerts) send(ctx context.Context, about *alert, kind string, now time.Time) error {
	at, hour := about.Since, 0
	switch kind {
	case "continues":
		hour = about.hour(now)
		at = at.Add(time.Duration(hour) * time.Hour)
	case "ended":
		at = about.Ended
	}
	sum := sha256.Sum256(fmt.Appendf(nil, "%s %s %s %d", about.key(), about.Since.Format(time.RFC3339Nano), kind, hour))
	data := map[string]any{
		"condition": about.Condition, about.Kind: about.Subject, "since": about.Since, "summary": about.Summary,
	}
	if about.action != "" {
		data["action"] = about.action
	}
	body, err := json.Marshal(map[string]any{"type": "pawl.alert." + kind, "timestamp": at, "data": data})
	if err != nil {
		return err
	}
	return a.post(ctx, "pawl_"+hex.EncodeToString(sum[:16]), body)
}
