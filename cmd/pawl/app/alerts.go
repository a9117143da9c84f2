package app

import (
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/pawlhq/pawl/cmd/pawl/config"
	"github.com/pawlhq/pawl/ledger"
	"github.com/pawlhq/pawl/metrics/alerts"
)

// SourceNames returns a name for each source: its kind, with a number if there are several of a kind.
func SourceNames(c *config.Config) []string {
	names, seen := make([]string, len(c.Sources)), map[string]int{}
	for i, s := range c.Sources {
		names[i] = s.Kind
		if seen[s.Kind]++; seen[s.Kind] > 1 {
			names[i] = fmt.Sprintf("%s_%d", s.Kind, seen[s.Kind])
		}
	}
	return names
}

// NewAlerts returns the alerts of the configuration, or nil if it has none. The name is that of the product.
// Without lastDelivery there are no alerts about sources.
func NewAlerts(c *config.Config, name string, led *ledger.Rows, log *slog.Logger, lastDelivery func(source string) time.Time) (*alerts.Alerts, error) {
	silent := map[string]time.Duration{}
	for i, source := range SourceNames(c) {
		if after := time.Duration(c.Sources[i].SilentAfter); after > 0 && lastDelivery != nil {
			silent[source] = after
		}
	}
	switch {
	case c.Alerts.URL.Reveal() != "":
	case c.Alerts.Secret.Reveal() != "":
		return nil, c.At("alerts", errors.New("the url is missing"))
	case len(silent) > 0:
		return nil, c.At("sources", errors.New("silent_after needs alerts: add alerts with url and secret"))
	default:
		return nil, nil
	}
	one, err := alerts.New(alerts.Config{
		URL: c.Alerts.URL.Reveal(), Secret: c.Alerts.Secret.Reveal(), Name: name, Ledger: led, Logger: log,
		OldestAfter: time.Duration(c.Alerts.OldestAfter), SilentAfter: silent, LastDelivery: lastDelivery,
	})
	if err != nil {
		return nil, c.At("alerts", err)
	}
	return one, nil
}
