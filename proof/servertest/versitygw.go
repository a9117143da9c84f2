package servertest

import (
	"encoding/base64"
	"errors"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pawlhq/pawl/bucket"
	"github.com/pawlhq/pawl/internal/toolcache"
)

// VersityGW starts a versitygw, which sends each notification once.
func VersityGW(t testing.TB, o Options) *Server {
	t.Helper()
	bin := binary(t, toolcache.VersityGW)
	s := &Server{
		Name: "versitygw", Region: "us-east-1", AccessKey: "pawl", SecretKey: secret(),
		Credentials: true, DeleteConditions: true, LosesRemovals: true, MixesHeads: true, CopyConditions: bucket.CopyParts,
		KeepsCutBodies: true, Garbles: true,
		Alias: func(key string) string { return strings.TrimPrefix(path.Clean("/"+key), "/") },
	}
	dir := t.TempDir()
	data := filepath.Join(dir, "data")
	if err := os.Mkdir(data, 0o755); err != nil {
		t.Fatal(err)
	}
	args := []string{"--quiet", "--port"}
	// The temporary folder must support extended attributes. With --sidecar, versitygw would not
	// write metadata atomically.
	backend := []string{"posix", data}
	if o.Webhook != "" {
		hook, err := withBasic(o.Webhook, o.Authorization)
		if err != nil {
			t.Fatal(err)
		}
		backend = append([]string{"--event-webhook-url", hook}, backend...)
		s.notify = func(testing.TB, string) {}
	}
	launch(t, s, func(addr string) *exec.Cmd {
		cmd := exec.Command(bin, append(append(args[:2:2], addr), backend...)...)
		cmd.Env = environment(dir, "ROOT_ACCESS_KEY="+s.AccessKey, "ROOT_SECRET_KEY="+s.SecretKey)
		cmd.Dir = dir
		return cmd
	})
	return s
}

// withBasic adds Basic credentials to the URL, because versitygw has no option for a header.
func withBasic(hook, authorization string) (string, error) {
	if authorization == "" {
		return hook, nil
	}
	u, err := url.Parse(hook)
	if err != nil {
		return "", fmt.Errorf("webhook: %w", err)
	}
	encoded, ok := strings.CutPrefix(authorization, "Basic ")
	if !ok {
		return "", errors.New("versitygw supports Basic authorization only")
	}
	pair, err := base64.StdEncoding.DecodeString(encoded)
	if err != nil {
		return "", fmt.Errorf("basic credentials: %w", err)
	}
	user, password, _ := strings.Cut(string(pair), ":")
	u.User = url.UserPassword(user, password)
	return u.String(), nil
}
