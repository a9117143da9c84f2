package parts

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/pawlhq/pawl/archive"
	"github.com/pawlhq/pawl/archive/encode"
	"github.com/pawlhq/pawl/archive/kinesisstream"
	"github.com/pawlhq/pawl/cmd/pawl/config"
)

const maxArchiveBytes = 512 << 20

// Archive returns an archive's configuration, without its store and registers.
func Archive(ctx context.Context, c *config.Archive) (archive.Config, error) {
	a := archive.Config{
		Name: c.Name, Bucket: c.To.Bucket, Prefix: c.To.Prefix, Format: c.Format,
		Limits: archive.Limits{FlushBytes: int(c.FlushBytes), FlushInterval: time.Duration(c.FlushInterval)},
		Codec:  encode.Codec{},
	}
	if c.Format != "" {
		_, err := encode.Parse(c.Format)
		if before, _, _ := strings.Cut(c.Format, "."); before == "json" {
			err = fmt.Errorf("format %s was removed: use ndjson or parquet, with another name and another prefix (docs/UPGRADING.md)", c.Format)
		}
		if err != nil {
			return a, err
		}
	}
	if a.Limits.FlushBytes > maxArchiveBytes {
		return a, fmt.Errorf("flush_bytes: want at most %d MiB, because an object is kept in memory while it is written", maxArchiveBytes>>20)
	}
	var err error
	if a.Origin, err = origin(c.From); err != nil {
		return a, err
	}
	a.Stream, err = kinesisstream.New(ctx, kinesisstream.Config{Stream: c.Kinesis.Stream, Region: c.Kinesis.Region, Endpoint: c.Kinesis.Endpoint})
	return a, err
}

func origin(from string) (time.Time, error) {
	switch from {
	case "", "trim_horizon":
		return time.Time{}, nil
	case "latest":
		return time.Now().UTC(), nil
	}
	t, err := time.Parse(time.RFC3339, from)
	if err != nil {
		return t, errors.New(`from: want trim_horizon, latest, or a time like 2026-01-02T15:04:05Z`)
	}
	return t.UTC(), nil
}
