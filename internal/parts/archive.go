package parts

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/pawlhq/pawl/archive"
	"github.com/pawlhq/pawl/archive/encode"
	"github.com/pawlhq/pawl/archive/kinesisstream"
	"github.com/pawlhq/pawl/internal/config"
)

// What an archive does if the file does not say.
const (
	defaultArchiveBytes = 16 << 20
	defaultArchiveAge   = time.Minute
	maxArchiveBytes     = 512 << 20
)

// Archive returns what the file says of an archive, without store and registers.
func Archive(ctx context.Context, c *config.Archive) (*archive.Archive, error) {
	a := &archive.Archive{
		Config: archive.Config{
			Name: c.Name, Bucket: c.To.Bucket, Prefix: c.To.Prefix, Format: c.Format,
			Limits: archive.Limits{Bytes: int(c.Bytes), Age: time.Duration(c.Age)},
		},
		Codec: codec{},
	}
	if a.Format == "" {
		a.Format = string(encode.NDJSONGzip)
	}
	if _, err := encode.Parse(a.Format); err != nil {
		return nil, err
	}
	if a.Limits.Bytes == 0 {
		a.Limits.Bytes = defaultArchiveBytes
	}
	if a.Limits.Age == 0 {
		a.Limits.Age = defaultArchiveAge
	}
	if a.Limits.Bytes > maxArchiveBytes {
		return nil, fmt.Errorf("bytes: at most %d MiB: an object is kept in memory while it is written", maxArchiveBytes>>20)
	}
	var err error
	if a.Origin, err = origin(c.From); err != nil {
		return nil, err
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

// codec is package encode.
type codec struct{}

// Knows implements [archive.Codec].
func (codec) Knows(format string) bool {
	_, err := encode.Parse(format)
	return err == nil
}

// Encode implements [archive.Codec].
func (codec) Encode(format, shard string, entries []archive.Entry) ([]byte, error) {
	var b bytes.Buffer
	err := encode.Encode(&b, encode.Format(format), shard, entries)
	return b.Bytes(), err
}

// Decode implements [archive.Codec].
func (codec) Decode(format, shard string, body []byte) (entries []archive.Entry, err error) {
	for e, err := range encode.Decode(bytes.NewReader(body), encode.Format(format), shard) {
		if err != nil {
			return nil, err
		}
		entries = append(entries, e)
	}
	return entries, nil
}
