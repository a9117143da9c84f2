package servertest

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/pawlhq/pawl/internal/toolcache"
)

// moto stores a bucket's EventBridgeConfiguration, but does not return it. AWS sends compact JSON.
const runMoto = `
import json, logging
from moto.s3.responses import S3Response
from moto.server import main

def get(self, plain=S3Response.get_bucket_notification):
    status, headers, body = plain(self)
    config = self.backend.get_bucket_notification_configuration(self.bucket_name)
    if config and config.event_bridge is not None:
        body = body.removesuffix("/>") + "><EventBridgeConfiguration/></NotificationConfiguration>"
    return status, headers, body

S3Response.get_bucket_notification = get
json.JSONEncoder.item_separator, json.JSONEncoder.key_separator = ",", ":"
logging.getLogger("werkzeug").setLevel(logging.ERROR)
main()
`

// AWS is a running moto. It emulates many services and accepts any credentials.
type AWS struct {
	Endpoint string
	Region   string
}

// Moto starts a moto.
func Moto(t testing.TB) *AWS {
	t.Helper()
	tools := AWSTools(t)
	a := &AWS{Region: "eu-central-1"}
	dir := t.TempDir()
	start(t, "moto", func(addr string) *exec.Cmd {
		a.Endpoint = "http://" + addr
		host, port, _ := net.SplitHostPort(addr)
		cmd := exec.Command(filepath.Join(tools, "python"), "-c", runMoto, "-H", host, "-p", port)
		cmd.Env, cmd.Dir = environment(dir), dir
		return cmd
	}, a.ready)
	return a
}

func (a *AWS) ready(ctx context.Context) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, a.Endpoint+"/moto-api/", http.NoBody)
	if err != nil {
		return err
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("moto answers %s", resp.Status)
	}
	return nil
}

// Environment returns the environment variables of a program that uses this server only.
func (a *AWS) Environment(dir string) []string {
	return environment(dir, "AWS_ENDPOINT_URL="+a.Endpoint, "AWS_REGION="+a.Region, "AWS_DEFAULT_REGION="+a.Region, "AWS_ACCESS_KEY_ID=pawl", "AWS_SECRET_ACCESS_KEY=pawl",
		"AWS_EC2_METADATA_DISABLED=true")
}

// AWSTools returns the folder of [toolcache.AWSTools]. Run its scripts with its Python.
func AWSTools(t testing.TB) string {
	t.Helper()
	return filepath.Join(binary(t, toolcache.AWSTools), "bin")
}

// Schemathesis returns the paths of the Python interpreter, the script and its hooks.
func Schemathesis(t testing.TB) (python, script, hooks string) {
	t.Helper()
	bin := filepath.Join(binary(t, toolcache.Schemathesis), "bin")
	root, err := toolcache.Root()
	if err != nil {
		t.Fatal(err)
	}
	return filepath.Join(bin, "python"), filepath.Join(bin, "schemathesis"), filepath.Join(root, "tools", "schemathesis", "hooks.py")
}
