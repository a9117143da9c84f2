package app

import (
	"cmp"
	"context"
	"errors"
	"io/fs"
	"os"

	"github.com/spf13/cobra"

	"github.com/pawlhq/pawl/bucket/s3bucket"
	"github.com/pawlhq/pawl/cmd/pawl/config"
)

// AddStoreFlags adds --endpoint.
func AddStoreFlags(cmd *cobra.Command, endpoint *string) {
	cmd.Flags().StringVar(endpoint, "endpoint", "",
		"`URL` of the object store (default: the configuration's objects.endpoint, then AWS_ENDPOINT_URL, then Amazon S3)")
}

// Store returns the object store at endpoint. If it is empty, the configuration file applies, or else the
// environment.
func (a *App) Store(ctx context.Context, endpoint string) (*s3bucket.Store, error) {
	if endpoint == "" {
		c, err := a.OptionalConfig()
		if err != nil {
			return nil, err
		}
		if c != nil {
			return Objects(ctx, c)
		}
		endpoint = cmp.Or(os.Getenv("AWS_ENDPOINT_URL_S3"), os.Getenv("AWS_ENDPOINT_URL"))
	}
	// Few other stores have a host name per bucket, so the AWS tools use path style, too.
	s, err := s3bucket.New(ctx, s3bucket.Config{Endpoint: endpoint, PathStyle: endpoint != ""})
	if err != nil {
		return nil, Misconfigured(err)
	}
	return s, nil
}

// OptionalConfig loads the objects section. Without --config and the default file, it returns nil.
func (a *App) OptionalConfig() (*config.Config, error) {
	if _, err := os.Stat(a.ConfigFile); !a.ConfigSet && errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	return a.Parts.LoadObjects(a.ConfigFile, os.LookupEnv)
}

// Objects returns the object store of the configuration.
func Objects(ctx context.Context, c *config.Config) (*s3bucket.Store, error) {
	s, err := s3bucket.New(ctx, s3bucket.Config{
		Endpoint: c.Objects.Endpoint, Region: c.Objects.Region, PathStyle: c.Objects.PathStyle,
	})
	if err != nil {
		return nil, c.At("objects", err)
	}
	return s, nil
}
