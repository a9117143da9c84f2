package s3bucket_test

import (
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"

	"github.com/pawlhq/pawl/bucket/buckettest"
	"github.com/pawlhq/pawl/bucket/s3bucket"
	"github.com/pawlhq/pawl/proof/servertest"
)

func TestConformance(t *testing.T) {
	t.Run("gofakes3", func(t *testing.T) { conform(t, servertest.S3(t)) })
	servertest.Each(t, servertest.Options{}, conform)
	t.Run("copies", func(t *testing.T) {
		conform(t, servertest.WithCopyConditions(t, servertest.MinIO(t, servertest.Options{})))
	})
}

func conform(t *testing.T, srv *servertest.Server) {
	buckettest.Run(t, func(t *testing.T) buckettest.Harness {
		h := buckettest.Harness{
			Store:            open(t, srv, srv.SecretKey),
			Bucket:           srv.NewBucket(t),
			DeleteConditions: srv.DeleteConditions,
			CopyConditions:   srv.CopyConditions,
			LosesRemovals:    srv.LosesRemovals,
			MixesHeads:       srv.MixesHeads,
			KeepsCutBodies:   srv.KeepsCutBodies,
			MergesMetadata:   srv.MergesMetadata,
			LosesHeaders:     srv.LosesHeaders,
			ListsBytes:       srv.ListsBytes,
			Alias:            srv.Alias,
			InProcess:        srv.InProcess,
		}
		if srv.Credentials {
			h.Denied = open(t, srv, "wrong")
		}
		if srv.Versions {
			h.Versioned = srv.NewBucket(t)
			keepVersions(t, srv, h.Versioned)
		}
		return h
	})
}

func open(t *testing.T, srv *servertest.Server, secret string) *s3bucket.Store {
	t.Helper()
	s, err := s3bucket.New(t.Context(), s3bucket.Config{
		Endpoint: srv.Endpoint, Region: srv.Region, PathStyle: true,
		AccessKey: srv.AccessKey, SecretKey: secret,
	})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func keepVersions(t *testing.T, srv *servertest.Server, bucket string) {
	t.Helper()
	_, err := srv.Client().PutBucketVersioning(t.Context(), &s3.PutBucketVersioningInput{
		Bucket:                  &bucket,
		VersioningConfiguration: &types.VersioningConfiguration{Status: types.BucketVersioningStatusEnabled},
	})
	if err != nil {
		t.Fatal(err)
	}
}
