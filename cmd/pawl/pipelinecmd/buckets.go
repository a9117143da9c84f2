package pipelinecmd

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/pawlhq/pawl"
	"github.com/pawlhq/pawl/bucket"
	"github.com/pawlhq/pawl/cmd/pawl/app"
	"github.com/pawlhq/pawl/event"
)

// bucketCheckTimeout is for all buckets, at start-up.
const bucketCheckTimeout = 20 * time.Second

func checkBuckets(ctx context.Context, m *app.Runtime) error {
	ctx, stop := context.WithTimeout(ctx, bucketCheckTimeout)
	defer stop()
	users := bucketUsers(m.Parts.Pipelines)
	group, ctx := errgroup.WithContext(ctx)
	for _, u := range users {
		group.Go(func() error {
			if err := m.Objects.Check(ctx, u.bucket); err != nil {
				return bucketFailure(m, u, err)
			}
			return nil
		})
	}
	return group.Wait()
}

type bucketUser struct{ bucket, pipeline, does string }

// Each bucket is returned once, with the first pipeline that needs it.
func bucketUsers(ps []pawl.Pipeline) (users []bucketUser) {
	seen := map[string]bool{}
	add := func(u bucketUser) {
		if !seen[u.bucket] {
			seen[u.bucket] = true
			users = append(users, u)
		}
	}
	for i := range ps {
		if ps[i].Order != pawl.EventOrder {
			add(bucketUser{ps[i].Match.Bucket, ps[i].Name, "reads"})
		}
		if ps[i].To != nil {
			add(bucketUser{ps[i].To.Bucket, ps[i].Name, "writes"})
		}
	}
	return users
}

// The endpoint may come from AWS_ENDPOINT_URL.
func storeAddress(m *app.Runtime) string { return cmp.Or(m.Objects.Endpoint(), "Amazon S3") }

func bucketFailure(m *app.Runtime, u bucketUser, err error) error {
	err = fmt.Errorf("bucket %s, which pipeline %s %s: %w", event.Quote(u.bucket), u.pipeline, u.does, err)
	at := storeAddress(m)
	switch {
	case errors.Is(err, bucket.ErrNoBucket):
		return &app.Failure{Code: app.ExitUsage, Err: err, Hint: "create the bucket at " + at + ", or correct its name in " + m.Config.Name()}
	case errors.Is(err, bucket.ErrDenied):
		return &app.Failure{Code: app.ExitUsage, Err: err, Hint: "check the credentials (AWS_ACCESS_KEY_ID, AWS_PROFILE, …) and that they allow listing, reading and, for outputs, writing the bucket"}
	case errors.Is(err, bucket.ErrInvalid):
		return &app.Failure{Code: app.ExitUsage, Err: err, Hint: "check the bucket's name and objects.region, endpoint and path_style in " + m.Config.Name()}
	}
	return app.Failed(err, "is the store running and reachable at "+at+"?")
}
