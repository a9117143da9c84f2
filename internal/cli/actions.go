package cli

import (
	"fmt"
	"log/slog"
	"time"

	"github.com/pawlhq/pawl"
	"github.com/pawlhq/pawl/action/copyaction"
	"github.com/pawlhq/pawl/action/execaction"
	"github.com/pawlhq/pawl/action/httpaction"
	"github.com/pawlhq/pawl/action/imageaction"
	"github.com/pawlhq/pawl/internal/config"
)

// pipelines makes the pipelines of the configuration.
func pipelines(c *config.Config, log *slog.Logger) ([]pawl.Pipeline, error) {
	all := make([]pawl.Pipeline, len(c.Pipelines))
	for i := range c.Pipelines {
		from := &c.Pipelines[i]
		all[i] = pawl.Pipeline{
			Name:        from.Name,
			Match:       pawl.Match{Bucket: from.Match.Bucket, Prefix: from.Match.Prefix, Suffix: from.Match.Suffix},
			EachVersion: from.Identity == "version",
			Eventual:    c.Objects.Eventual,
		}
		if from.Order == "event" {
			all[i].Order = pawl.EventOrder
		}
		name, err := act(from, &all[i], log)
		if err != nil {
			return nil, c.At(fmt.Sprintf("pipelines[%d].%s", i, name), err)
		}
	}
	return all, nil
}

// act gives a pipeline its handler and its output. name is the action's.
func act(from *config.Pipeline, to *pawl.Pipeline, log *slog.Logger) (name string, err error) {
	switch {
	case from.Image != nil:
		to.To = output(from.Image.To, from.Image.Suffix)
		to.Handler, err = imageaction.New(imageaction.Config{
			Grayscale: from.Image.Grayscale, Width: from.Image.Width, Height: from.Image.Height,
			Format: from.Image.Format, Quality: from.Image.Quality,
			MaxPixels: int64(from.Image.MaxPixels), MaxBytes: int64(from.Image.MaxBytes),
		})
		return "image", err
	case from.Copy != nil:
		to.To = output(from.Copy.To, "")
		to.Handler, err = copyaction.New(copyaction.Config{})
		return "copy", err
	case from.Exec != nil:
		to.To = output(from.Exec.To, from.Exec.Suffix)
		to.Handler, err = execaction.New(execaction.Config{
			Command: from.Exec.Command, Env: from.Exec.Env, Timeout: time.Duration(from.Exec.Timeout),
			ContentType: from.Exec.ContentType, Logger: log,
		})
		return "exec", err
	}
	to.Handler, err = httpaction.New(httpaction.Config{
		URL: from.HTTP.URL, Secret: from.HTTP.Secret.Reveal(), Timeout: time.Duration(from.HTTP.Timeout),
	})
	return "http", err
}

func output(l config.Location, suffix string) *pawl.Output {
	if l.IsZero() {
		return nil
	}
	return &pawl.Output{Bucket: l.Bucket, Prefix: l.Prefix, Suffix: suffix}
}
