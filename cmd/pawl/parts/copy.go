package parts

import (
	"context"

	"github.com/pawlhq/pawl"
	"github.com/pawlhq/pawl/action/copyaction"
	"github.com/pawlhq/pawl/cmd/pawl/config"
)

// Copy copies the object.
type Copy struct {
	// Location of the copy: s3://bucket/prefix/. The key of the copy is this prefix followed by
	// the part of the input's key after the matched prefix.
	To config.Location `yaml:"to" jsonschema:"required"`
}

// Build implements [Action].
func (c Copy) Build(_ context.Context, _ *Assembly, p *pawl.Pipeline) (err error) {
	p.To = output(c.To, "")
	p.Handler, err = copyaction.New(copyaction.Config{})
	return err
}
