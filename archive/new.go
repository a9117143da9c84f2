package archive

import (
	"cmp"
	"errors"
	"fmt"
	"log/slog"
	"regexp"
	"strings"
	"time"

	"github.com/pawlhq/pawl/internal/process"
	"github.com/pawlhq/pawl/lock"
)

const (
	defaultFormat          = "ndjson.gz"
	defaultFlushBytes      = 16 << 20
	defaultFlushInterval   = time.Minute
	defaultLease           = 30 * time.Second
	defaultShutdownTimeout = 20 * time.Second
)

// New validates a configuration and fills in the defaults. It sends no request.
func New(c Config) (*Archive, error) {
	c.Format = cmp.Or(c.Format, defaultFormat)
	c.Limits.FlushBytes = cmp.Or(c.Limits.FlushBytes, defaultFlushBytes)
	c.Limits.FlushInterval = cmp.Or(c.Limits.FlushInterval, defaultFlushInterval)
	c.Lease = cmp.Or(c.Lease, defaultLease)
	c.ShutdownTimeout = cmp.Or(c.ShutdownTimeout, defaultShutdownTimeout)
	c.Owner = cmp.Or(c.Owner, process.Name())
	c.Logger = cmp.Or(c.Logger, slog.Default())
	if c.Now == nil {
		c.Now = time.Now
	}
	if c.Sleep == nil {
		c.Sleep = process.Sleep
	}
	if c.Nonce == nil {
		c.Nonce = process.Nonce
	}
	if err := c.check(); err != nil {
		return nil, fmt.Errorf("archive %q: %w", c.Name, err)
	}
	return &Archive{Config: c}, nil
}

func (c *Config) check() error {
	switch {
	case c.Stream == nil || c.Store == nil || c.Registers == nil || c.Codec == nil:
		return errors.New("want a stream, a store, registers and a codec")
	case c.Bucket == "":
		return errors.New("want a bucket")
	case c.Prefix != "" && !strings.HasSuffix(c.Prefix, "/"):
		return fmt.Errorf("the prefix %q does not end with a slash", c.Prefix)
	case !c.Codec.Knows(c.Format):
		return fmt.Errorf("unknown format %q", c.Format)
	}
	return cmp.Or(CheckName(c.Name), CheckLease(c.Lease))
}

var validName = regexp.MustCompile(`^[a-z0-9._-]{1,64}$`)

// CheckName returns an error if a name is not valid for an archive.
func CheckName(name string) error {
	if !validName.MatchString(name) {
		return errors.New(`want at most 64 characters of a-z, 0-9, "-", "_" and "."`)
	}
	return nil
}

// CheckLease returns an error if ttl is not valid for the lease of a shard. Zero is valid.
func CheckLease(ttl time.Duration) error {
	if ttl != 0 && (ttl < lock.MinTTL || ttl > lock.MaxTTL) {
		return fmt.Errorf("%v is out of range: archives need %v to %v", ttl, lock.MinTTL, lock.MaxTTL)
	}
	return nil
}
