package parts

import (
	"context"
	"time"

	"github.com/pawlhq/pawl"
	"github.com/pawlhq/pawl/action/httpaction"
	"github.com/pawlhq/pawl/cmd/pawl/config"
)

// HTTP posts a description of the object to a web service.
type HTTP struct {
	// URL for the POST requests.
	URL string `yaml:"url" jsonschema:"required"`
	// Key of the Standard Webhooks signature, "whsec_…". Requests are not signed without it.
	Secret config.Secret `yaml:"secret"`
	// Maximum time until the response. Default: 30s.
	Timeout config.Duration `yaml:"timeout"`
}

// Build implements [Action].
func (h HTTP) Build(_ context.Context, _ *Assembly, p *pawl.Pipeline) (err error) {
	p.Handler, err = httpaction.New(httpaction.Config{
		URL: h.URL, Secret: h.Secret.Reveal(), Timeout: time.Duration(h.Timeout),
	})
	return err
}
