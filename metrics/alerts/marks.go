package alerts

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"time"

	"github.com/pawlhq/pawl/internal/format"
	"github.com/pawlhq/pawl/ledger"
)

// mark is the last occurrence of something, in a register that all processes write.
type mark struct {
	format.Header
	At   time.Time `json:"at"`
	Text string    `json:"text,omitempty"`
}

const publishInterval = 15 * time.Second

func deliveryRegister(source string) string { return "alerts/delivery/" + source }
func gapRegister(archive string) string     { return "alerts/gap/" + archive }

// NoteGap records a gap in an archive. It does not wait for the ledger.
func (a *Alerts) NoteGap(archive, shard string, expired bool) {
	text := "Records of shard " + shard + " may have expired before they were stored."
	if expired {
		text = "Records of shard " + shard + " expired before they were stored."
	}
	a.mu.Lock()
	a.marks[gapRegister(archive)] = mark{At: time.Now(), Text: text}
	a.mu.Unlock()
	select {
	case a.wake <- struct{}{}:
	default:
	}
}

// Publish writes gaps and the times of deliveries to the ledger until ctx ends. Every process calls it.
func (a *Alerts) Publish(ctx context.Context) {
	published := map[string]time.Time{}
	for ctx.Err() == nil {
		a.publish(ctx, published)
		select {
		case <-ctx.Done():
		case <-a.wake:
		case <-time.After(publishInterval):
		}
	}
	late, stop := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
	defer stop()
	a.publish(late, published)
}

func (a *Alerts) publish(ctx context.Context, published map[string]time.Time) {
	a.mu.Lock()
	marks := maps.Clone(a.marks)
	a.mu.Unlock()
	for source := range a.SilentAfter {
		marks[deliveryRegister(source)] = mark{At: a.LastDelivery(source)}
	}
	for name, m := range marks {
		if at, known := published[name]; known && !m.At.After(at) {
			continue
		}
		if err := a.writeMark(ctx, name, m); err == nil {
			published[name] = m.At
		} else if ctx.Err() == nil && !errors.Is(err, ledger.ErrRegisterChanged) {
			a.Logger.Warn("alerts are late; trying again", "error", err)
		}
	}
}

// writeMark keeps a newer mark of another process. A mark without a time only creates the register.
func (a *Alerts) writeMark(ctx context.Context, name string, m mark) error {
	stored, r, err := a.readMark(ctx, name)
	if err != nil || r.Version != "" && !m.At.After(stored.At) {
		return err
	}
	if m.At.IsZero() {
		m.At = a.created
	}
	m.Header = stored.Header
	value, err := format.Encode(&m)
	if err == nil {
		_, err = a.Ledger.WriteRegister(ctx, name, r.Version, value)
	}
	return err
}

func (a *Alerts) readMark(ctx context.Context, name string) (m mark, r ledger.Register, err error) {
	if r, err = a.Ledger.ReadRegister(ctx, name); err == nil {
		err = format.Decode(r.Value, &m)
	}
	if err != nil {
		err = fmt.Errorf("read register %s: %w", name, err)
	}
	return m, r, err
}
