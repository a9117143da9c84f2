package servertest

import (
	"context"
	"fmt"
	"net/http"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"

	"github.com/pawlhq/pawl/bucket"
	"github.com/pawlhq/pawl/internal/toolcache"
)

const minioTarget = "arn:minio:sqs::H:webhook"

// MinIO starts a MinIO with a single drive.
func MinIO(t testing.TB, o Options) *Server {
	t.Helper()
	bin := binary(t, toolcache.MinIO)
	s := &Server{
		Name: "minio", Region: "us-east-1", AccessKey: "pawl", SecretKey: secret(),
		Credentials: true, Versions: true, ListsBytes: true, CopyConditions: bucket.CopyParts,
		Alias: func(key string) string { return strings.TrimLeft(key, "/") },
	}
	dir := t.TempDir()
	env := environment(dir,
		"MINIO_ROOT_USER="+s.AccessKey,
		"MINIO_ROOT_PASSWORD="+s.SecretKey,
		// No other ports and no outgoing connections.
		"MINIO_BROWSER=off",
		"MINIO_UPDATE=off",
		"MINIO_CALLHOME_ENABLE=off",
	)
	if o.Webhook != "" {
		env = append(env,
			"MINIO_NOTIFY_WEBHOOK_ENABLE_H=on",
			"MINIO_NOTIFY_WEBHOOK_ENDPOINT_H="+o.Webhook,
			"MINIO_NOTIFY_WEBHOOK_AUTH_TOKEN_H="+o.Authorization,
		)
		if !o.Direct {
			env = append(env, "MINIO_NOTIFY_WEBHOOK_QUEUE_DIR_H="+filepath.Join(dir, "undelivered"))
		}
		s.notify = s.notifyMinIO
	}
	launch(t, s, func(addr string) *exec.Cmd {
		cmd := exec.Command(bin, "server", "--quiet", "--address", addr, filepath.Join(dir, "data"))
		cmd.Env, cmd.Dir = env, dir
		return cmd
	})
	// A new server responds before it has loaded the configuration of its buckets. It would then
	// overwrite newer settings.
	if err := poll(t.Context(), nil, s.minioLoaded); err != nil {
		t.Fatalf("start MinIO: %v", err)
	}
	return s
}

func (s *Server) notifyMinIO(t testing.TB, bucket string) {
	t.Helper()
	err := poll(t.Context(), nil, func(ctx context.Context) error {
		_, err := s.Client().PutBucketNotificationConfiguration(ctx, &s3.PutBucketNotificationConfigurationInput{
			Bucket: &bucket,
			NotificationConfiguration: &types.NotificationConfiguration{
				QueueConfigurations: []types.QueueConfiguration{{
					QueueArn: aws.String(minioTarget),
					Events:   []types.Event{"s3:ObjectCreated:*", "s3:ObjectRemoved:*"},
				}},
			},
		})
		return err
	})
	if err != nil {
		t.Fatalf("configure notifications of %s on MinIO: %v", bucket, err)
	}
}

// Until it is loaded, the health check responds with 503.
func (s *Server) minioLoaded(ctx context.Context) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, s.Endpoint+"/minio/health/cluster", nil)
	if err != nil {
		return err
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	defer func() { _ = resp.Body.Close() }()
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("MinIO's health check: %s %s", resp.Status, resp.Header.Get("x-minio-server-status"))
	}
	return nil
}
