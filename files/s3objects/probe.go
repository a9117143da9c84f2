package s3objects

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"

	"github.com/pawlhq/pawl/files"
)

// ErrForgeable is returned if the store accepts an upload with a forged signature.
var ErrForgeable = errors.New("the object store accepted an upload with a forged signature " +
	"(X-Amz-Content-Sha256: STREAMING-UNSIGNED-PAYLOAD-TRAILER): " +
	"anyone who has seen a signed URL can write any object that the service can write")

// ErrReplicationHeaders is returned if users can upload objects that the store can neither read nor
// list.
var ErrReplicationHeaders = errors.New("the object store accepts MinIO's replication headers from users: an upload with such a header creates " +
	"an object that the store can neither read nor list, and while it exists, listings of the bucket fail, including those of backup programs. " +
	"Let a proxy remove X-Minio-Replication-* from users' requests: docs/FILES.md shows how")

// Before a probe, an object without a SHA-256 may be a file of the service.
var errNotProbed = errors.New("the object has no SHA-256, and the store has not been probed yet: audit without --dry-run, or start the service")

// ErrUnsuitable is returned if the store would lose files or expose them.
var ErrUnsuitable = errors.New("the object store is not suitable for files")

const (
	probeTimeout, cleanupTimeout = time.Minute, 30 * time.Second

	// leftoverAge is the age at which a probe object counts as left by a crashed process.
	leftoverAge = time.Hour

	// MinIO cannot list an object of [probe.tryReplicationHeader] that is shorter than any encrypted
	// object. It would break listings of other programs.
	probeText = "pawl proves that this store keeps what it was promised, and nothing else"
	otherText = "PAWL PROVES THAT THIS STORE KEEPS WHAT IT WAS PROMISED, AND NOTHING ELSE"
)

// Probe checks that the store is suitable for files, with a few keys below ".pawl-doctor/" in
// prefix. The store must accept a signed upload once, and only with the promised bytes. It must
// reject a copy source, which could read any object of the service. HEAD must return length and
// SHA-256, and the bucket must not keep versions.
//
// Warnings describe limitations of a suitable store. The error for an unsuitable store matches
// [ErrUnsuitable], and possibly [ErrForgeable]. Any other error may be temporary, and the next
// signature needs another probe.
func (b *Bucket) Probe(ctx context.Context, prefix string) (warnings []error, err error) {
	b.AllowProbe(prefix)
	p, err := b.requireSuitable(ctx, prefix)
	if err != nil {
		return nil, err
	}
	if p.forgeable {
		warnings = append(warnings, ErrForgeable)
	}
	if p.replicationHeaders {
		warnings = append(warnings, ErrReplicationHeaders)
	}
	if p.multipartErr != nil {
		warnings = append(warnings, p.multipartErr)
	}
	return warnings, nil
}

// AllowProbe permits Stat to probe the store below prefix when it finds an object without a
// SHA-256. Without it, as in a dry run, Stat returns an error.
func (b *Bucket) AllowProbe(prefix string) { b.probePrefix.Store(&prefix) }

// AcceptForgeable permits the use of a store that accepts forged signatures. Call it before the
// first use. It returns the bucket.
func (b *Bucket) AcceptForgeable() *Bucket {
	b.acceptForgeable = true
	return b
}

// No URL may be signed before requireSuitable. A URL contains the ID of the access key, which is
// enough to forge signatures if the store accepts them.
func (b *Bucket) requireSuitable(ctx context.Context, key string) (*probe, error) {
	p, err := b.ensureProbed(ctx, key)
	if err == nil && p.forgeable && !b.acceptForgeable {
		return nil, fmt.Errorf("s3objects: s3://%s: %w: %w", b.name, ErrUnsuitable, ErrForgeable)
	}
	return p, err
}

// ensureProbed probes one call at a time. Without a probe prefix, it probes in the folder of key.
func (b *Bucket) ensureProbed(ctx context.Context, key string) (*probe, error) {
	if p := b.probed.Load(); p != nil {
		return p, nil
	}
	prefix := key[:strings.LastIndex(key, "/")+1]
	if given := b.probePrefix.Load(); given != nil {
		prefix = *given
	}
	done := b.probing.DoChan("", func() (any, error) {
		ctx, stop := context.WithTimeout(context.WithoutCancel(ctx), probeTimeout)
		defer stop()
		p := &probe{Bucket: b, folder: prefix + files.ProbeFolder + rand.Text() + "/", sent: map[string]bool{}}
		err := p.run(ctx)
		if err == nil {
			err = p.findLeftovers(ctx, prefix+files.ProbeFolder)
		}
		if err = errors.Join(err, p.clean(ctx)); err != nil {
			return nil, fmt.Errorf("s3objects: probe s3://%s: %w", b.name, err)
		}
		b.probed.Store(p)
		return p, nil
	})
	select {
	case <-ctx.Done():
		return nil, ctx.Err()
	case r := <-done:
		p, _ := r.Val.(*probe)
		return p, r.Err
	}
}

type probe struct {
	*Bucket
	signsEmptyHeaders  bool // uploads must sign emptyHeaders
	forgeable          bool
	replicationHeaders bool
	multipartErr       error // nil: multipart uploads are possible

	folder  string
	sent    map[string]bool // keys of objects that may exist
	version string          // version of a written object; empty: the bucket keeps no versions
}

func (p *probe) run(ctx context.Context) error {
	if err := p.checkUpload(ctx, "1"); err != nil {
		return err
	}
	if err := p.requireRefusal(ctx, "1", probeText, "a second PUT to the same URL", nil); err != nil {
		return err
	}
	if err := p.requireRefusal(ctx, "2", otherText, "other bytes than those of the signed SHA-256", nil); err != nil {
		return err
	}
	if err := errors.Join(p.tryForgedSignature(ctx, "forged"), p.tryReplicationHeader(ctx, "unreadable")); err != nil {
		return err
	}
	switch err := p.checkMultipart(ctx); {
	case errors.Is(err, errNoCompositeSHA256), isCode(err, "AccessDenied", "NotImplemented"):
		p.multipartErr = fmt.Errorf("s3objects: multipart uploads are not possible: %w", err)
	case err != nil:
		return err
	}
	if err := p.tryCopySource(ctx, "3"); !errors.Is(err, ErrUnsuitable) {
		return err
	}
	p.signsEmptyHeaders = true
	if err := p.checkUpload(ctx, "4"); err != nil {
		return err
	}
	return p.tryCopySource(ctx, "5")
}

func (p *probe) checkUpload(ctx context.Context, name string) error {
	status, err := p.put(ctx, name, probeText, nil)
	switch {
	case err != nil:
		return err
	case status == http.StatusForbidden:
		return fmt.Errorf("%w: a signed PUT got status 403: the access key needs permission to write below %s", ErrUnsuitable, p.folder)
	case status/100 != 2:
		return fmt.Errorf("%w: a signed PUT with SHA-256 and If-None-Match got status %d: use a store that supports it", ErrUnsuitable, status)
	case p.version != "":
		return fmt.Errorf("%w: the bucket keeps versions, so the bytes of removed files would remain: suspend its versioning, or use another bucket", ErrUnsuitable)
	}
	f := p.file(name)
	seen, err := p.stat(ctx, f.Key)
	if err == nil && (seen.Size != f.Size || seen.SHA256 != f.SHA256) {
		err = fmt.Errorf("%w: HEAD does not show the length and SHA-256 of an upload: use a store that does, and let no proxy remove x-amz-checksum-sha256", ErrUnsuitable)
	}
	return err
}

func (p *probe) checkMultipart(ctx context.Context) error {
	f := p.file("parts")
	f.PartSize = f.Size
	var err error
	if f.UploadID, err = p.createUpload(ctx, &f); err != nil {
		return err
	}
	_, err = p.listParts(ctx, &f)
	for _, failed := range p.Uploads(ctx, f.Key) {
		err = errors.Join(err, failed)
	}
	return errors.Join(err, p.Abort(ctx, f.Key, f.UploadID))
}

func (p *probe) tryCopySource(ctx context.Context, name string) error {
	return p.requireRefusal(ctx, name, probeText, "a copy source that was not signed, with which users can read any object", func(r *http.Request) {
		r.Header.Set(copySource, "/"+p.name+"/"+p.file("1").Key)
	})
}

func (p *probe) requireRefusal(ctx context.Context, name, body, what string, change func(*http.Request)) error {
	status, err := p.put(ctx, name, body, change)
	if err == nil && status/100 == 2 {
		err = fmt.Errorf("%w: it accepts %s: use a store that rejects it", ErrUnsuitable, what)
	}
	return err
}

// tryForgedSignature uses the form of signature that MinIO does not check.
func (p *probe) tryForgedSignature(ctx context.Context, name string) error {
	f := p.file(name)
	body := fmt.Sprintf("%x\r\n%s\r\n0\r\nx-amz-checksum-sha256:%s\r\n\r\n", f.Size, probeText, base64.StdEncoding.EncodeToString(f.SHA256[:]))
	status, err := p.put(ctx, name, body, func(r *http.Request) {
		query := r.URL.Query()
		query.Set("X-Amz-Signature", strings.Repeat("0", 64))
		r.URL.RawQuery = query.Encode()
		r.Header.Del("X-Amz-Checksum-Sha256")
		r.Header.Set("X-Amz-Trailer", "x-amz-checksum-sha256")
		r.Header.Set("X-Amz-Content-Sha256", "STREAMING-UNSIGNED-PAYLOAD-TRAILER")
		r.Header.Set("X-Amz-Decoded-Content-Length", strconv.FormatInt(f.Size, 10))
	})
	p.forgeable = status/100 == 2
	return err
}

func (p *probe) tryReplicationHeader(ctx context.Context, name string) error {
	_, err := p.put(ctx, name, probeText, func(r *http.Request) { r.Header.Set("X-Minio-Replication-Encrypted-Multipart", "1") })
	if err != nil {
		return err
	}
	seen, err := p.stat(ctx, p.file(name).Key)
	p.replicationHeaders = err == nil && seen.Found && seen.SHA256 == [32]byte{}
	return err
}

func (p *probe) file(name string) files.File {
	return files.File{ID: "a proof", Entity: "pawl", Key: p.folder + name, Promise: files.Promise{
		Size: int64(len(probeText)), ContentType: "text/plain", SHA256: sha256.Sum256([]byte(probeText)),
	}}
}

// put uploads body like a client. It returns an error for responses that may be temporary.
func (p *probe) put(ctx context.Context, name, body string, change func(*http.Request)) (status int, err error) {
	f := p.file(name)
	signed, err := p.signPut(ctx, p.client, &f, time.Now().Add(probeTimeout), p.signsEmptyHeaders)
	if err != nil {
		return 0, err
	}
	r, err := http.NewRequestWithContext(ctx, signed.Method, signed.URL, strings.NewReader(body))
	if err != nil {
		return 0, err
	}
	for name, value := range signed.Headers {
		r.Header.Set(name, value)
	}
	if change != nil {
		change(r)
	}
	p.sent[f.Key] = true
	resp, err := p.client.Options().HTTPClient.Do(r)
	if err != nil {
		return 0, err
	}
	if err := resp.Body.Close(); err != nil {
		return 0, err
	}
	if version := resp.Header.Get("X-Amz-Version-Id"); version != "null" {
		p.version = version
	}
	switch status := resp.StatusCode; {
	case status/100 == 2, status == http.StatusNotImplemented:
		return status, nil
	case status/100 == 4 && status != http.StatusNotFound && status != http.StatusTooManyRequests && status != http.StatusRequestTimeout:
		return status, nil
	}
	return 0, fmt.Errorf("a signed PUT got status %q", resp.Status)
}

func (p *probe) findLeftovers(ctx context.Context, below string) error {
	out, err := p.client.ListObjectsV2(ctx, &s3.ListObjectsV2Input{Bucket: &p.name, Prefix: &below})
	if err != nil {
		return fmt.Errorf("list %s: %w", below, err)
	}
	for _, o := range out.Contents {
		if time.Since(aws.ToTime(o.LastModified)) > leftoverAge {
			p.sent[aws.ToString(o.Key)] = true
		}
	}
	if p.multipartErr != nil {
		return nil
	}
	for u, err := range p.Uploads(ctx, below) {
		if err == nil && time.Since(u.Begun) > leftoverAge {
			err = p.Abort(ctx, u.Key, u.ID)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (p *probe) clean(ctx context.Context) (err error) {
	ctx, stop := context.WithTimeout(context.WithoutCancel(ctx), cleanupTimeout)
	defer stop()
	for key := range p.sent {
		in := &s3.DeleteObjectInput{Bucket: &p.name, Key: &key}
		if p.version != "" {
			in.VersionId = &p.version
		}
		_, failed := p.client.DeleteObject(ctx, in)
		if isCode(failed, "AccessDenied") {
			failed = fmt.Errorf("%w: the access key needs permission to delete objects: %w", ErrUnsuitable, failed)
		}
		if failed != nil {
			err = errors.Join(err, fmt.Errorf("delete %s: %w", key, failed))
		}
	}
	return err
}
