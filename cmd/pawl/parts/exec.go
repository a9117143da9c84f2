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
	// Where its standard output goes: s3://bucket/prefix/. Default: nowhere.
	To config.Location `yaml:"to"`
	// What the output's key ends with, after the input's.
	Suffix string `yaml:"suffix"`
	// Media type of the output. Default: application/octet-stream.
	ContentType string `yaml:"content_type"`
	// What it gets to see of the environment besides PAWL_… and the likes of
	// PATH: NAME=value sets a variable, NAME passes on Pawl's own.
	Env []string `yaml:"env"`
	// How long it may run. Default: 10m.
	Timeout config.Duration `yaml:"timeout"`
	// How much it may print where that becomes the output: more is a permanent
	// failure. Default: 256MiB.
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
