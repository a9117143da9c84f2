package s3objects

import (
	"context"

	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/smithy-go/middleware"
	smithyhttp "github.com/aws/smithy-go/transport/http"
)

// emptyHeaders are headers that a client must not add to a signed upload. They copy, lock, encrypt
// or expose objects with the rights of the service. Amazon S3 rejects unsigned x-amz headers, but
// MinIO accepts them. URLs for MinIO therefore sign these headers as empty; MinIO reads a missing
// signed header from the query. Cache-Control is not in the list, because browsers add it to
// requests with If-None-Match.
var emptyHeaders = []string{
	copySource,
	"x-amz-acl", "x-amz-tagging", "x-amz-storage-class", "x-amz-website-redirect-location",
	"x-amz-server-side-encryption", "x-amz-server-side-encryption-aws-kms-key-id", "x-amz-server-side-encryption-context",
	"x-amz-server-side-encryption-customer-algorithm", "x-amz-server-side-encryption-customer-key", "x-amz-server-side-encryption-customer-key-md5",
	"x-amz-object-lock-mode", "x-amz-object-lock-retain-until-date", "x-amz-object-lock-legal-hold", "x-amz-replication-status",
	"x-minio-source-mtime", "x-minio-source-etag", "x-minio-source-replication-request",
	"content-encoding", "content-disposition", "content-language", "expires",
}

const copySource = "x-amz-copy-source"

func signEmpty(names []string) func(*s3.Options) {
	hold := func(ctx context.Context, in middleware.BuildInput, next middleware.BuildHandler) (middleware.BuildOutput, middleware.Metadata, error) {
		if r, ok := in.Request.(*smithyhttp.Request); ok {
			query := r.URL.Query()
			for _, name := range names {
				r.Header.Set(name, "")
				query.Set(name, "")
			}
			r.URL.RawQuery = query.Encode()
		}
		return next.HandleBuild(ctx, in)
	}
	return s3.WithAPIOptions(func(stack *middleware.Stack) error {
		return stack.Build.Add(middleware.BuildMiddlewareFunc("pin", hold), middleware.After)
	})
}
