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

// AddStoreFlags adds the flags of commands that are given a bucket, and need no
// configuration file.
func AddStoreFlags(cmd *cobra.Command, endpoint *string) {
	cmd.Flags().StringVar(endpoint, "endpoint", "",
		"`URL` of the object store (default: that of the objects in pawl.yaml here, or in the file that --config names; without one AWS_ENDPOINT_URL's or Amazon's)")
}

// Store returns the object store at the endpoint. Without one it is that of the
// configuration file, and where there is no file, that of the environment.
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
	// As the AWS tools do it: few stores other than Amazon's have a host name
	// for each bucket.
	s, err := s3bucket.New(ctx, s3bucket.Config{Endpoint: endpoint, PathStyle: endpoint != ""})
	if err != nil {
		return nil, Misconfigured(err)
	}
	return s, nil
}

// OptionalConfig loads the configuration for the sake of its objects. It is nil
// where the command line names none, and none is there.
func (a *App) OptionalConfig() (*config.Config, error) {
	if _, err := os.Stat(a.ConfigFile); !a.ConfigSet && errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	return a.Parts.LoadObjects(a.ConfigFile, os.LookupEnv)
}

// Objects opens the object store that the configuration names.
func Objects(ctx context.Context, c *config.Config) (*s3bucket.Store, error) {
	s, err := s3bucket.New(ctx, s3bucket.Config{
		Endpoint: c.Objects.Endpoint, Region: c.Objects.Region, PathStyle: c.Objects.PathStyle,
	})
	if err != nil {
		return nil, c.At("objects", err)
	}
	return s, nil
}
