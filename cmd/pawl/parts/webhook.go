package parts

import (
	"cmp"
	"context"

	"github.com/pawlhq/pawl"
	"github.com/pawlhq/pawl/cmd/pawl/config"
	"github.com/pawlhq/pawl/source/webhooksource"
)

// Webhook receives notifications by HTTP POST.
type Webhook struct {
	// Address to listen on, for example 127.0.0.1:8081. An address that other machines can
	// reach requires a token or a secret.
	Listen string `yaml:"listen" jsonschema:"required"`
	// Path of the URL. Default: /events.
	Path string `yaml:"path"`
	// Value of the Authorization header that the store sends.
	Token config.Secret `yaml:"token"`
	// Key of Standard Webhooks signatures, "whsec_…".
	Secret config.Secret `yaml:"secret"`
	// Format of the notifications. Default: auto.
	Dialect config.Dialect `yaml:"dialect"`
	// Trust the sequencers of the store although its dialect gives no guarantee, for example
	// with a single MinIO node.
	TrustSequencer bool `yaml:"trust_sequencer"`
}

// Build implements [Source].
func (w Webhook) Build(_ context.Context, a *Assembly) (pawl.Source, error) {
	return webhooksource.New(webhooksource.Config{
		Listen: w.Listen, Path: w.Path, Token: w.Token.Reveal(), Secret: w.Secret.Reveal(),
		Dialect: w.Dialect.Event(), TrustSequencer: w.TrustSequencer, ShutdownTimeout: a.ShutdownTimeout, Logger: a.Logger,
	})
}

// Describe implements [Source].
func (w Webhook) Describe() string { return w.Listen + cmp.Or(w.Path, "/events") }
