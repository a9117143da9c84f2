//go:build unix

package e2e

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"net/http"
	"slices"
	"testing"
	"time"

	"github.com/lestrrat-go/jwx/v3/jwa"
	"github.com/lestrrat-go/jwx/v3/jwt"

	"github.com/pawlhq/pawl/proof/rig"
)

const filesSecret = "0123456789abcdef0123456789abcdef"

type filesClient struct {
	*rig.FilesClient
	apis func() []string
	rng  *rand.Rand
}

func newFilesClient(t testing.TB, subject string, rng *rand.Rand, apis func() []string) *filesClient {
	t.Helper()
	// A frozen process delays a request for this long, and so does a delayed upload.
	client := &http.Client{Timeout: maxWriteDelay + 2*time.Second, Transport: &http.Transport{}}
	t.Cleanup(client.CloseIdleConnections)
	return &filesClient{apis: apis, rng: rng, FilesClient: &rig.FilesClient{HTTP: client, Token: filesToken(t, subject), Base: func() string {
		all := apis()
		if len(all) == 0 {
			return ""
		}
		return "http://" + all[rng.IntN(len(all))]
	}}}
}

func filesToken(t testing.TB, subject string) string {
	t.Helper()
	made, err := jwt.NewBuilder().Subject(subject).Expiration(time.Now().Add(time.Hour)).Claim("scope", "read:* write:*").Build()
	if err != nil {
		t.Fatal(err)
	}
	token, err := jwt.Sign(made, jwt.WithKey(jwa.HS256(), []byte(filesSecret)))
	if err != nil {
		t.Fatal(err)
	}
	return string(token)
}

func (c *filesClient) sign(ctx context.Context, entity, key string, body []byte) (*rig.FileAnswer, error) {
	p := rig.NewPromise(entity, "text/plain", body)
	return c.Begin(ctx, key, &p)
}

// filePart is the size of all parts except the last.
const filePart = 5 << 20

func (c *filesClient) signParts(ctx context.Context, entity, key string, body []byte) (*rig.FileAnswer, error) {
	p := &rig.Promise{Entity: entity, Size: len(body), ContentType: "text/plain", PartSize: filePart}
	for part := range slices.Chunk(body, filePart) {
		p.Parts = append(p.Parts, rig.SHA256(part))
	}
	return c.Begin(ctx, key, p)
}

// put uploads bytes, or their parts from last to first.
func (c *filesClient) put(ctx context.Context, signed *rig.FileAnswer, body []byte) error {
	if signed.Upload != nil {
		return c.putPiece(ctx, signed.Upload, body)
	}
	for i, part := range slices.Backward(slices.Collect(slices.Chunk(body, filePart))) {
		if err := c.putPiece(ctx, signed.Parts[i], part); err != nil {
			return err
		}
	}
	return nil
}

// A rejected copy means that the store has them.
func (c *filesClient) putPiece(ctx context.Context, signed *rig.SignedURL, body []byte) error {
	for {
		status, err := c.putOnce(ctx, signed, body)
		switch {
		case err == nil && (status == http.StatusOK || status == http.StatusPreconditionFailed):
			return nil
		case err == nil && status == http.StatusNotFound: // of parts: they were completed meanwhile
			return nil
		case err == nil && status < 500:
			return fmt.Errorf("the store answers an upload with %d", status)
		case ctx.Err() != nil:
			return context.Cause(ctx)
		}
	}
}

func (c *filesClient) putOnce(ctx context.Context, to *rig.SignedURL, body []byte) (int, error) {
	return c.Put(ctx, to, nil, bytes.NewReader(body), len(body))
}
