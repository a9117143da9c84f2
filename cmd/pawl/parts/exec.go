package parts

import (
	"context"
	"time"

	"github.com/pawlhq/pawl"
	"github.com/pawlhq/pawl/action/execaction"
	"github.com/pawlhq/pawl/cmd/pawl/config"
)

// Exec runs a program with the object on its standard input.
type Exec struct {
	// The program and its arguments. No shell is involved.
	Command []string `yaml:"command" jsonschema:"required,minItems=1"`
	// Location of its standard output: s3://bucket/prefix/. Default: no output.
	To config.Location `yaml:"to"`
	// Suffix that is appended to the key of the output. Default: none.
	Suffix string `yaml:"suffix"`
	// Media type of the output. Default: application/octet-stream.
	ContentType string `yaml:"content_type"`
	// Environment of the program in addition to PAWL_…, PATH and a few others: NAME=value
	// sets a variable, NAME passes on the variable of Pawl.
	Env []string `yaml:"env"`
	// Maximum duration of a run. Default: 10m.
	Timeout config.Duration `yaml:"timeout"`
	// Maximum size of the output. A larger output is a permanent failure. Default: 256MiB.
	MaxOutput config.Size `yaml:"max_output"`
}

// Build implements [Action].
func (e Exec) Build(_ context.Context, a *Assembly, p *pawl.Pipeline) (err error) {
	p.To = output(e.To, e.Suffix)
	p.Handler, err = execaction.New(execaction.Config{
		Command: e.Command, Env: e.Env, Timeout: time.Duration(e.Timeout), ContentType: e.ContentType,
		MaxOutput: int64(e.MaxOutput), Logger: a.Logger,
	})
	return err
}
