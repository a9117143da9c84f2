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

// ErrForgeable: the store accepted an upload with a forged signature.
var ErrForgeable = errors.New("the object store accepted an upload with a forged signature " +
	"(X-Amz-Content-Sha256: STREAMING-UNSIGNED-PAYLOAD-TRAILER): " +
	"anyone who has seen a signed URL can write any object that the service can write")

// ErrBreakable: users can upload objects that the store can neither read nor list.
var ErrBreakable = errors.New("the object store accepts the headers of MinIO's replication from users: an upload with one makes " +
	"an object that the store can neither read nor list, and listings of the bucket fail while it exists, those of backups too. " +
	"Let a proxy remove X-Minio-Replication-* from users' requests; docs/FILES.md has the rule")

// errNotProved: without a proof an object without a SHA-256 may be a file all the same.
var errNotProved = errors.New("it has no SHA-256, and the store is not proved to show them: audit without --dry-run, or start the service")

// ErrUnfit: files would be lost or betrayed in the store. The error says why.
var ErrUnfit = errors.New("the store is not fit for the files of users")

const (
	// proofTime bounds a proof, and proofClean the cleaning up.
	proofTime, proofClean = time.Minute, 30 * time.Second

	// proofOld is when nothing of a proof is under way, whatever clocks say.
	proofOld = time.Hour

	// The texts are long enough to be the encrypted form of an object. MinIO could not
	// list a shorter object of [proof.breaks], and listings of other programs would fail.
	proofText = "pawl proves that this store keeps what it was promised, and nothing else"
	otherText = "PAWL PROVES THAT THIS STORE KEEPS WHAT IT WAS PROMISED, AND NOTHING ELSE"
)

// Prove proves, with a few requests on fresh keys below ".pawl-doctor/" after prefix,
// what files live by: that signed uploads are taken once, and only with the bytes that
// were promised; that a copy source, which would read any object with the service's
// rights, is refused; that HEAD shows length and SHA-256; and that the bucket keeps no
// versions. It needs the permissions to list, read, write and remove there. What
// proofs have left whose process was killed it removes after an hour.
//
// doubts say what the service has to do without, or what its operator should know.
//
// An error that matches [ErrUnfit] is the store's, also one that matches [ErrForgeable].
// After any other, which may pass, the bucket is proved before the next URL is signed.
func (b *Bucket) Prove(ctx context.Context, prefix string) (doubts []error, err error) {
	b.MayProve(prefix)
	p, err := b.fit(ctx, prefix)
	if err != nil {
		return nil, err
	}
	if p.forgeable {
		doubts = append(doubts, ErrForgeable)
	}
	if p.breakable {
		doubts = append(doubts, ErrBreakable)
	}
	if p.noParts != nil {
		doubts = append(doubts, p.noParts)
	}
	return doubts, nil
}

// MayProve lets a look that finds an object without a SHA-256 prove the store, below
// prefix. Without it such a look fails: an audit that is not to write must not prove.
func (b *Bucket) MayProve(prefix string) { b.prefix.Store(&prefix) }

// AcceptForgeable lets the bucket sign URLs although the store accepts uploads with
// forged signatures. It must be called before the bucket is used. It returns the bucket.
func (b *Bucket) AcceptForgeable() *Bucket {
	b.acceptForgeable = true
	return b
}

// fit returns what a proof has shown. No URL may be signed before, because a URL shows
// the name of the access key, which is all that a forger needs.
func (b *Bucket) fit(ctx context.Context, key string) (*proof, error) {
	p, err := b.proved(ctx, key)
	if err == nil && p.forgeable && !b.acceptForgeable {
		return nil, fmt.Errorf("s3objects: s3://%s: %w: %w", b.name, ErrUnfit, ErrForgeable)
	}
	return p, err
}

// proved returns what a proof has shown, by one at a time, where there was none.
// Without [Bucket.Prove] the folder of key is the prefix.
func (b *Bucket) proved(ctx context.Context, key string) (*proof, error) {
	if p := b.proof.Load(); p != nil {
		return p, nil
	}
	prefix := key[:strings.LastIndex(key, "/")+1]
	if given := b.prefix.Load(); given != nil {
		prefix = *given
	}
	done := b.proving.DoChan("", func() (any, error) {
		ctx, stop := context.WithTimeout(context.WithoutCancel(ctx), proofTime)
		defer stop()
		p := &proof{Bucket: b, folder: prefix + files.Proofs + rand.Text() + "/", sent: map[string]bool{}}
		err := p.run(ctx)
		if err == nil {
			err = p.leftovers(ctx, prefix+files.Proofs)
		}
		if err = errors.Join(err, p.clean(ctx)); err != nil {
			return nil, fmt.Errorf("s3objects: proving s3://%s: %w", b.name, err)
		}
		b.proof.Store(p)
		return p, nil
	})
	select {
	case <-ctx.Done():
		return nil, ctx.Err()
	case r := <-done:
		p, _ := r.Val.(*proof)
		return p, r.Err
	}
}

// proof is what is known of a store.
type proof struct {
	*Bucket
	pins      bool // signatures have to hold headers down
	forgeable bool
	breakable bool
	noParts   error // why no file can be uploaded in parts; nil: it can

	folder  string
	sent    map[string]bool // keys that may be there
	version string          // that was written; empty: the bucket keeps none
}

func (p *proof) run(ctx context.Context) error {
	if err := p.honest(ctx, "1"); err != nil {
		return err
	}
	if err := p.refused(ctx, "1", proofText, "a second PUT to the same URL", nil); err != nil {
		return err
	}
	if err := p.refused(ctx, "2", otherText, "other bytes than their SHA-256 promises", nil); err != nil {
		return err
	}
	if err := errors.Join(p.forge(ctx, "forged"), p.breaks(ctx, "unreadable")); err != nil {
		return err
	}
	switch err := p.inParts(ctx); {
	case errors.Is(err, errNoSum), isCode(err, "AccessDenied", "NotImplemented"):
		p.noParts = fmt.Errorf("s3objects: no file can be uploaded in parts: %w", err)
	case err != nil:
		return err
	}
	if err := p.copied(ctx, "3"); !errors.Is(err, ErrUnfit) {
		return err
	}
	p.pins = true
	if err := p.honest(ctx, "4"); err != nil {
		return err
	}
	return p.copied(ctx, "5")
}

// honest makes an upload as it should be, and looks at it.
func (p *proof) honest(ctx context.Context, name string) error {
	status, err := p.put(ctx, name, proofText, nil)
	switch {
	case err != nil:
		return err
	case status == http.StatusForbidden:
		return fmt.Errorf("%w: it answers 403 to a signed PUT: the key must have the permission to write below %s", ErrUnfit, p.folder)
	case status/100 != 2:
		return fmt.Errorf("%w: it answers %d to a signed PUT with SHA-256 and If-None-Match: use one that takes it", ErrUnfit, status)
	case p.version != "":
		return fmt.Errorf("%w: the bucket keeps versions, so that the bytes of removed files would stay: suspend its versioning, or use another bucket", ErrUnfit)
	}
	f := p.file(name)
	seen, err := p.look(ctx, f.Key)
	if err == nil && (seen.Size != f.Size || seen.SHA256 != f.SHA256) {
		err = fmt.Errorf("%w: HEAD does not show the length and SHA-256 of what was uploaded: use one that does, and let no proxy drop x-amz-checksum-sha256", ErrUnfit)
	}
	return err
}

// inParts tries what uploads in parts need beside PUTs: to begin one, to list its parts,
// to find it and to end it.
func (p *proof) inParts(ctx context.Context) error {
	f := p.file("parts")
	f.PartSize = f.Size
	var err error
	if f.UploadID, err = p.begin(ctx, &f); err != nil {
		return err
	}
	_, err = p.parts(ctx, &f)
	for _, failed := range p.Uploads(ctx, f.Key) {
		err = errors.Join(err, failed)
	}
	return errors.Join(err, p.Abort(ctx, f.Key, f.UploadID))
}

// copied tries to copy an object by a signed upload.
func (p *proof) copied(ctx context.Context, name string) error {
	return p.refused(ctx, name, proofText, "a copy source that was not signed, by which users read any object", func(r *http.Request) {
		r.Header.Set(copySource, "/"+p.name+"/"+p.file("1").Key)
	})
}

// refused makes an upload that the store must refuse.
func (p *proof) refused(ctx context.Context, name, body, what string, change func(*http.Request)) error {
	status, err := p.put(ctx, name, body, change)
	if err == nil && status/100 == 2 {
		err = fmt.Errorf("%w: it takes %s: use one that refuses it", ErrUnfit, what)
	}
	return err
}

// forge makes an upload with another signature, in the form that MinIO does not check,
// and notes whether the store accepts it.
func (p *proof) forge(ctx context.Context, name string) error {
	f := p.file(name)
	body := fmt.Sprintf("%x\r\n%s\r\n0\r\nx-amz-checksum-sha256:%s\r\n\r\n", f.Size, proofText, base64.StdEncoding.EncodeToString(f.SHA256[:]))
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

// breaks uploads with a header of MinIO's replication, and finds out whether the store can
// read the object.
func (p *proof) breaks(ctx context.Context, name string) error {
	_, err := p.put(ctx, name, proofText, func(r *http.Request) { r.Header.Set("X-Minio-Replication-Encrypted-Multipart", "1") })
	if err != nil {
		return err
	}
	seen, err := p.look(ctx, p.file(name).Key)
	p.breakable = err == nil && seen.Found && seen.SHA256 == [32]byte{}
	return err
}

func (p *proof) file(name string) files.File {
	return files.File{ID: "a proof", Entity: "pawl", Key: p.folder + name, Promise: files.Promise{
		Size: int64(len(proofText)), ContentType: "text/plain", SHA256: sha256.Sum256([]byte(proofText)),
	}}
}

// put uploads as a user does, but with the bytes of body and as change leaves the
// request. What a store answers that cannot work just now is an error.
func (p *proof) put(ctx context.Context, name, body string, change func(*http.Request)) (status int, err error) {
	f := p.file(name)
	signed, err := p.signPut(ctx, p.client, &f, time.Now().Add(proofTime), p.pins)
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
	return 0, fmt.Errorf("the store answers %q to a signed PUT", resp.Status)
}

// leftovers finds what proofs have left whose process was killed.
func (p *proof) leftovers(ctx context.Context, below string) error {
	out, err := p.client.ListObjectsV2(ctx, &s3.ListObjectsV2Input{Bucket: &p.name, Prefix: &below})
	if err != nil {
		return fmt.Errorf("listing %s: %w", below, err)
	}
	for _, o := range out.Contents {
		if time.Since(aws.ToTime(o.LastModified)) > proofOld {
			p.sent[aws.ToString(o.Key)] = true
		}
	}
	if p.noParts != nil {
		return nil
	}
	for u, err := range p.Uploads(ctx, below) {
		if err == nil && time.Since(u.Begun) > proofOld {
			err = p.Abort(ctx, u.Key, u.ID)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// clean removes what the proof may have left.
func (p *proof) clean(ctx context.Context) (err error) {
	ctx, stop := context.WithTimeout(context.WithoutCancel(ctx), proofClean)
	defer stop()
	for key := range p.sent {
		in := &s3.DeleteObjectInput{Bucket: &p.name, Key: &key}
		if p.version != "" {
			in.VersionId = &p.version
		}
		_, failed := p.client.DeleteObject(ctx, in)
		if isCode(failed, "AccessDenied") {
			failed = fmt.Errorf("%w: the key must have the permission to remove: %w", ErrUnfit, failed)
		}
		if failed != nil {
			err = errors.Join(err, fmt.Errorf("removing %s: %w", key, failed))
		}
	}
	return err
}
