package s3objects

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"
	"github.com/aws/smithy-go"

	"github.com/pawlhq/pawl/files"
)

var errNoCompositeSHA256 = errors.New("the store keeps no SHA-256 of multipart uploads: upload files in one piece, or use another store")

// Begin implements [files.Multipart].
func (b *Bucket) Begin(ctx context.Context, f *files.File) (uploadID string, err error) {
	store, err := b.requireSuitable(ctx, f.Key)
	if err == nil {
		err = store.multipartErr
	}
	if err != nil {
		return "", err
	}
	return b.createUpload(ctx, f)
}

func (b *Bucket) createUpload(ctx context.Context, f *files.File) (uploadID string, err error) {
	out, err := b.client.CreateMultipartUpload(ctx, &s3.CreateMultipartUploadInput{
		Bucket: &b.name, Key: &f.Key, ContentType: &f.ContentType, Metadata: map[string]string{"entity": f.Entity},
		ChecksumAlgorithm: types.ChecksumAlgorithmSha256, ChecksumType: types.ChecksumTypeComposite,
	})
	if err == nil && out.ChecksumAlgorithm != types.ChecksumAlgorithmSha256 {
		err = errNoCompositeSHA256
	}
	if err != nil {
		return "", fmt.Errorf("s3objects: start the multipart upload of %s to %s: %w", f.ID, b.name, err)
	}
	return aws.ToString(out.UploadId), nil
}

// SignPart implements [files.Multipart].
func (b *Bucket) SignPart(ctx context.Context, f *files.File, number int, sum [32]byte, until time.Time) (files.SignedRequest, error) {
	store, err := b.requireSuitable(ctx, f.Key)
	if err != nil {
		return files.SignedRequest{}, err
	}
	life, err := urlLife(f, until)
	if err != nil {
		return files.SignedRequest{}, err
	}
	length := min(f.PartSize, f.Size-int64(number-1)*f.PartSize)
	o := signHeaders(life)
	if store.signsEmptyHeaders {
		o = signHeaders(life, copySource)
	}
	signed, err := s3.NewPresignClient(b.public).PresignUploadPart(ctx, &s3.UploadPartInput{
		Bucket: &b.name, Key: &f.Key, UploadId: &f.UploadID, PartNumber: aws.Int32(int32(number)), ContentLength: &length,
		ChecksumSHA256: aws.String(base64.StdEncoding.EncodeToString(sum[:])),
	}, o)
	if err != nil {
		return files.SignedRequest{}, fmt.Errorf("s3objects: sign part %d of %s: %w", number, f.ID, err)
	}
	return toSignedRequest(signed, until), nil
}

// A completion can take minutes on S3.
const completeTimeout = 15 * time.Minute

// Complete implements [files.Multipart]. It ignores the end of ctx, because MinIO loses the parts
// of an interrupted completion.
func (b *Bucket) Complete(ctx context.Context, f *files.File) error {
	ctx, stop := context.WithTimeout(context.WithoutCancel(ctx), completeTimeout)
	defer stop()
	failed := func(err error) error {
		return fmt.Errorf("s3objects: complete the multipart upload of %s in %s: %w", f.ID, b.name, err)
	}
	parts, err := b.listParts(ctx, f)
	if isCode(err, "NoSuchUpload") || err == nil && len(parts) != f.Parts() {
		return nil
	}
	if err != nil {
		return failed(err)
	}
	_, err = b.client.CompleteMultipartUpload(ctx, &s3.CompleteMultipartUploadInput{
		Bucket: &b.name, Key: &f.Key, UploadId: &f.UploadID, IfNoneMatch: aws.String("*"),
		MultipartUpload: &types.CompletedMultipartUpload{Parts: parts},
	})
	if isCode(err, "NoSuchUpload", "PreconditionFailed") { // another request, or the first copy of this one, completed it
		return nil
	}
	if err != nil {
		return failed(err)
	}
	if seen, err := b.Stat(ctx, f.Key); err == nil && seen.Found && seen.Parts == 0 {
		return failed(errNoCompositeSHA256)
	}
	return nil
}

func (b *Bucket) listParts(ctx context.Context, f *files.File) (parts []types.CompletedPart, err error) {
	for pages := s3.NewListPartsPaginator(b.client, &s3.ListPartsInput{Bucket: &b.name, Key: &f.Key, UploadId: &f.UploadID}); pages.HasMorePages(); {
		page, err := pages.NextPage(ctx)
		if err != nil {
			return nil, err
		}
		for _, p := range page.Parts {
			parts = append(parts, types.CompletedPart{PartNumber: p.PartNumber, ETag: p.ETag, ChecksumSHA256: p.ChecksumSHA256})
		}
	}
	return parts, nil
}

func isCode(err error, codes ...string) bool {
	refused, ok := errors.AsType[smithy.APIError](err)
	return ok && slices.Contains(codes, refused.ErrorCode())
}

// Abort implements [files.Multipart].
func (b *Bucket) Abort(ctx context.Context, key, uploadID string) error {
	_, err := b.client.AbortMultipartUpload(ctx, &s3.AbortMultipartUploadInput{Bucket: &b.name, Key: &key, UploadId: &uploadID})
	if err != nil && !isCode(err, "NoSuchUpload") {
		return fmt.Errorf("s3objects: abort the multipart upload of %s/%s: %w", b.name, key, err)
	}
	return nil
}

// Uploads implements [files.Multipart]. MinIO lists the uploads of one key or of all keys, but
// returns nothing for other prefixes.
func (b *Bucket) Uploads(ctx context.Context, prefix string) iter.Seq2[files.OpenUpload, error] {
	in := &s3.ListMultipartUploadsInput{Bucket: &b.name}
	if !strings.HasSuffix(prefix, "/") {
		in.Prefix = &prefix
	}
	return func(yield func(files.OpenUpload, error) bool) {
		for pages := s3.NewListMultipartUploadsPaginator(b.client, in); pages.HasMorePages(); {
			page, err := pages.NextPage(ctx)
			if isCode(err, "NoSuchUpload") { // from gofakes3 if no upload is open
				return
			}
			if err != nil {
				yield(files.OpenUpload{}, fmt.Errorf("s3objects: list the multipart uploads of %s: %w", b.name, err))
				return
			}
			for _, u := range page.Uploads {
				if !strings.HasPrefix(aws.ToString(u.Key), prefix) {
					continue
				}
				if !yield(files.OpenUpload{Key: *u.Key, ID: aws.ToString(u.UploadId), Begun: aws.ToTime(u.Initiated)}, nil) {
					return
				}
			}
		}
	}
}

func parseSHA256(text string) (sum [32]byte, parts int) {
	text, count, composite := strings.Cut(text, "-")
	if composite {
		parts, _ = strconv.Atoi(count)
	}
	if b, err := base64.StdEncoding.DecodeString(text); err == nil && len(b) == len(sum) {
		return [32]byte(b), parts
	}
	return sum, 0
}
