package e2e

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"encoding/xml"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	v4 "github.com/aws/aws-sdk-go-v2/aws/signer/v4"
	"github.com/aws/aws-sdk-go-v2/service/s3"

	"github.com/pawlhq/pawl/proof/servertest"
)

type policyTest struct {
	*testing.T
	server   *servertest.Server
	binary   string
	dir      string
	policies map[string]string
}

// TestPermissions runs each command on MinIO with exactly the policy that docs/PERMISSIONS.md
// states for it. With ListBucket alone each command fails, so the server enforces the policies.
func TestPermissions(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	p := &policyTest{T: t, server: servertest.MinIO(t, servertest.Options{}), binary: build(t), dir: dir, policies: statedPolicies(t)}
	for _, name := range []string{"photos", "photos-out", "state", "lake", "uploads"} {
		if _, err := p.server.Client().CreateBucket(t.Context(), &s3.CreateBucketInput{Bucket: aws.String(name)}); err != nil {
			t.Fatal(err)
		}
	}
	p.write("pawl.yaml", fmt.Sprintf(`
ledger: sqlite:pawl.db
objects: {endpoint: %q, path_style: true}
retry: {attempts: 1}
pipelines: [{name: mirror, match: {bucket: photos}, copy: {to: s3://photos-out/gray/}}]
`, p.server.Endpoint))
	p.replay()
	p.expect("audit", 0, "audit", "--outputs")
	p.expect("doctor", p.asRoot("doctor", "s3://photos"), "doctor", "s3://photos")
	p.expect("lock", 0, "lock", "s3://state/locks/deploy", "--", "true")
	p.expect("update", 0, "update", "--create", "s3://state/locks/n.json", "--", "echo", "1")
	p.files()
	p.archive() // last, as it needs Node
}

var statedPolicy = regexp.MustCompile("(?ms)^```json policy=([a-z ,]+)\n(.*?)^```")

func statedPolicies(t *testing.T) map[string]string {
	t.Helper()
	text, err := os.ReadFile("../../docs/PERMISSIONS.md")
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]string{}
	for _, m := range statedPolicy.FindAllSubmatch(text, -1) {
		var policy struct {
			Version   string
			Statement []map[string]any
		}
		if err := json.Unmarshal(m[2], &policy); err != nil {
			t.Fatalf("the policy of %s: %v", m[1], err)
		}
		kept := policy.Statement[:0]
		for _, s := range policy.Statement {
			if strings.Contains(fmt.Sprint(s["Action"]), "s3:") {
				kept = append(kept, s)
			}
		}
		policy.Statement = kept
		b, err := json.Marshal(policy)
		if err != nil {
			t.Fatal(err)
		}
		for command := range strings.SplitSeq(string(m[1]), ",") {
			all[command] = string(b)
		}
	}
	return all
}

const listOnly = `{"Version":"2012-10-17","Statement":[{"Effect":"Allow","Action":"s3:ListBucket","Resource":"arn:aws:s3:::*"}]}`

func (p *policyTest) write(name, text string) {
	p.Helper()
	if err := os.WriteFile(filepath.Join(p.dir, name), []byte(text), 0o600); err != nil {
		p.Fatal(err)
	}
}

func (p *policyTest) replay() {
	p.Helper()
	p.put("photos", "a.txt")
	p.write("created.json", `{"EventName":"s3:ObjectCreated:Put","Key":"photos/a.txt","Records":[`+minioRecord("ObjectCreated:Put", "a.txt")+`]}`)
	p.write("removed.json", `{"EventName":"s3:ObjectRemoved:Delete","Key":"photos/a.txt","Records":[`+minioRecord("ObjectRemoved:Delete", "a.txt")+`]}`)
	if code, out := p.pawl(p.session(listOnly), "replay", "created.json"); code == 0 {
		p.Errorf("a replay succeeds with s3:ListBucket alone: %s", out)
	}
	p.expect("audit", 0, "redrive", "--all")
	p.expect("replay", 0, "replay", "created.json")
	if _, err := p.server.Client().DeleteObject(p.Context(), &s3.DeleteObjectInput{Bucket: aws.String("photos"), Key: aws.String("a.txt")}); err != nil {
		p.Fatal(err)
	}
	p.expect("replay", 0, "replay", "removed.json")
	if n := p.objects("photos-out", ""); n != 0 {
		p.Errorf("%d objects are left in the output bucket, want none", n)
	}
}

func minioRecord(name, key string) string {
	return fmt.Sprintf(`{"eventVersion":"2.0","eventSource":"minio:s3","awsRegion":"","eventTime":"2026-01-02T03:04:05.678Z",
		"eventName":"s3:%s","s3":{"s3SchemaVersion":"1.0","bucket":{"name":"photos"},"object":{"key":%q,"sequencer":"1886D1B5C3F1A2B3"}}}`, name, key)
}

func (p *policyTest) archive() {
	p.Helper()
	streams := servertest.Kinesalite(p)
	stream := streams.NewStream(p, 1)
	p.write("pawl.yaml", fmt.Sprintf(`
ledger: sqlite:archive.db
objects: {endpoint: %q, path_style: true}
archives: [{name: clicks, kinesis: {stream: %q, endpoint: %q, region: us-east-1}, to: s3://lake/clicks/, flush_interval: 1s}]
`, p.server.Endpoint, stream, streams.Endpoint))
	if err := streams.Produce(p.Context(), stream, servertest.Load{To: 10, Size: 100}); err != nil {
		p.Fatal(err)
	}
	stop := p.daemon("archive run", "archive", "run")
	p.wait(func() bool { return p.objects("lake", "clicks/20") > 0 })
	stop()
	p.expect("archive verify", 0, "archive", "verify", "--deep")
	p.expect("archive status", 0, "archive", "status")
}

func (p *policyTest) files() {
	p.Helper()
	address, err := servertest.FreeAddress()
	if err != nil {
		p.Fatal(err)
	}
	p.write("pawl.yaml", fmt.Sprintf(`
objects: {endpoint: %q, path_style: true}
files: {to: s3://uploads/files/, listen: %q, secret: %q, accept_forgeable_uploads: true}
`, p.server.Endpoint, address, filesSecret))
	_, token := p.pawl(nil, "files", "token", "read:a", "write:a")
	stop := p.daemon("files serve", "files", "serve")
	p.wait(func() bool {
		req, err := http.NewRequestWithContext(p.Context(), http.MethodPost, "http://"+address+"/v1/files?entity=a", strings.NewReader("cat"))
		if err != nil {
			p.Fatal(err)
		}
		req.Header.Set("Authorization", "Bearer "+strings.TrimSpace(token))
		req.Header.Set("Content-Type", "text/plain")
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			return false
		}
		defer func() { _ = resp.Body.Close() }()
		body, err := io.ReadAll(resp.Body)
		if err != nil || resp.StatusCode != http.StatusCreated {
			p.Fatalf("POST /v1/files: %s %s %v", resp.Status, body, err)
		}
		return true
	})
	stop()
	p.expect("files audit", 0, "files", "audit")
	p.expect("files rebuild", 0, "files", "rebuild", "--trust-metadata")
}

func (p *policyTest) wait(holds func() bool) {
	p.Helper()
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for deadline := time.Now().Add(time.Minute); !holds(); <-tick.C {
		if time.Now().After(deadline) {
			p.Fatal("not within a minute")
		}
	}
}

func (p *policyTest) put(bucket, key string) {
	p.Helper()
	if _, err := p.server.Client().PutObject(p.Context(), &s3.PutObjectInput{Bucket: &bucket, Key: &key, Body: strings.NewReader(key)}); err != nil {
		p.Fatal(err)
	}
}

func (p *policyTest) objects(bucket, prefix string) int {
	p.Helper()
	page, err := p.server.Client().ListObjectsV2(p.Context(), &s3.ListObjectsV2Input{Bucket: &bucket, Prefix: &prefix})
	if err != nil {
		p.Fatal(err)
	}
	return len(page.Contents)
}

func (p *policyTest) expect(policy string, code int, args ...string) {
	p.Helper()
	if p.policies[policy] == "" {
		p.Fatalf("docs/PERMISSIONS.md has no policy for %q", policy)
	}
	got, out := p.pawl(p.session(p.policies[policy]), args...)
	if got != code {
		p.Errorf("pawl %s: exit code %d, want %d:\n%s", strings.Join(args, " "), got, code, out)
	}
}

func (p *policyTest) asRoot(args ...string) int {
	p.Helper()
	code, _ := p.pawl([]string{"AWS_ACCESS_KEY_ID=" + p.server.AccessKey, "AWS_SECRET_ACCESS_KEY=" + p.server.SecretKey}, args...)
	return code
}

func (p *policyTest) command(env []string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(p.Context(), p.binary, args...)
	cmd.Dir = p.dir
	cmd.Env = append(append(os.Environ(), "AWS_ENDPOINT_URL="+p.server.Endpoint, "AWS_REGION="+p.server.Region, "XDG_CACHE_HOME="+p.TempDir()), env...)
	servertest.DieWithParent(cmd)
	return cmd
}

func (p *policyTest) pawl(env []string, args ...string) (code int, out string) {
	p.Helper()
	cmd := p.command(env, args...)
	b, err := cmd.CombinedOutput()
	if cmd.ProcessState == nil {
		p.Fatal(err)
	}
	return cmd.ProcessState.ExitCode(), string(b)
}

func (p *policyTest) daemon(policy string, args ...string) (stop func()) {
	p.Helper()
	var out bytes.Buffer
	cmd := p.command(p.session(p.policies[policy]), args...)
	cmd.Stdout, cmd.Stderr = &out, &out
	if err := cmd.Start(); err != nil {
		p.Fatal(err)
	}
	stop = func() {
		if cmd.ProcessState != nil {
			return
		}
		_ = cmd.Process.Signal(syscall.SIGTERM)
		if err := cmd.Wait(); err != nil || p.Failed() || strings.Contains(out.String(), "denied") {
			p.Errorf("pawl %s: %v\n%s", strings.Join(args, " "), err, out.String())
		}
	}
	p.Cleanup(stop)
	return stop
}

func (p *policyTest) session(policy string) []string {
	p.Helper()
	form := url.Values{"Action": {"AssumeRole"}, "Version": {"2011-06-15"}, "Policy": {policy}}.Encode()
	req, err := http.NewRequestWithContext(p.Context(), http.MethodPost, p.server.Endpoint, strings.NewReader(form))
	if err != nil {
		p.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	sum := sha256.Sum256([]byte(form))
	root := aws.Credentials{AccessKeyID: p.server.AccessKey, SecretAccessKey: p.server.SecretKey}
	if err := v4.NewSigner().SignHTTP(p.Context(), root, req, hex.EncodeToString(sum[:]), "sts", p.server.Region, time.Now()); err != nil {
		p.Fatal(err)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		p.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	var answer struct {
		Result struct {
			Credentials struct{ AccessKeyId, SecretAccessKey, SessionToken string }
		} `xml:"AssumeRoleResult"`
	}
	if err := xml.NewDecoder(resp.Body).Decode(&answer); err != nil || resp.StatusCode != http.StatusOK {
		p.Fatalf("AssumeRole: %s: %v", resp.Status, err)
	}
	c := answer.Result.Credentials
	return []string{"AWS_ACCESS_KEY_ID=" + c.AccessKeyId, "AWS_SECRET_ACCESS_KEY=" + c.SecretAccessKey, "AWS_SESSION_TOKEN=" + c.SessionToken}
}
