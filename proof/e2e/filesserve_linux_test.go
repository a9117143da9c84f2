package e2e

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"

	"github.com/pawlhq/pawl/proof/servertest"
)

const serveConfig = `
objects: {endpoint: %q, region: %s, path_style: true}
sources:
  - webhook: {listen: "${PAWL_LISTEN}", path: /events, token: %q}
files: {to: s3://inputs/files/, index: %q, listen: "${PAWL_API}", secret: %q, accept_forgeable_uploads: true}
`

const serveAuth = "Bearer s3cret"

type filesServer struct {
	*fleet
	server *servertest.Server
}

func serve(t testing.TB, server *servertest.Server, index string) *filesServer {
	t.Helper()
	if _, err := server.Client().CreateBucket(t.Context(), &s3.CreateBucketInput{Bucket: aws.String(inputs)}); err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	s := &filesServer{server: server, fleet: &fleet{
		binary: build(t), dir: dir, config: filepath.Join(dir, "pawl.yaml"), command: []string{"files", "serve"},
	}}
	text := fmt.Sprintf(serveConfig, server.Endpoint, server.Region, serveAuth, index, filesSecret)
	if err := os.WriteFile(s.config, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	s.env = []string{"AWS_ACCESS_KEY_ID=" + server.AccessKey, "AWS_SECRET_ACCESS_KEY=" + server.SecretKey}
	s.start(t, 1)
	return s
}

func (s *filesServer) client(t testing.TB) *filesClient {
	t.Helper()
	return newFilesClient(t, "client", rand.New(rand.NewPCG(1, 2)), s.apis)
}
