package check

import (
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/pawlhq/pawl/internal/toolcache"
	"github.com/pawlhq/pawl/proof/servertest"
)

// readOnly runs the demo in the folder $0 as its root, in which only /tmp can be written.
const readOnly = `cd "$0"; mkdir -p proc dev; touch dev/null; mount --bind . .; cd "$0"
mount -t proc proc proc; mount --bind /dev/null dev/null; mount -t tmpfs -o mode=1777 tmpfs tmp; mount -o remount,ro,bind .
if touch x 2>/dev/null; then exit 1; fi; exec chroot --userspec=65532:65532 . /pawl demo --once`

func TestImage(t *testing.T) {
	if _, err := exec.LookPath("buildah"); err != nil {
		t.Fatal("buildah is not installed (Debian: apt-get install buildah)")
	}
	dir := t.TempDir()
	conf := filepath.Join(dir, "storage.conf")
	store := "[storage]\ndriver = \"vfs\"\ngraphroot = \"" + dir + "/root\"\nrunroot = \"" + dir + "/run\"\n"
	if err := os.WriteFile(conf, []byte(store), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("CONTAINERS_STORAGE_CONF", conf)
	t.Setenv("BUILDAH_ISOLATION", "chroot")
	script := filepath.Join(filepath.Dir(dist), "release", "image.sh")
	for _, name := range []string{"localhost/pawl", "localhost/pawl-again"} {
		output(t, script, name)
	}
	list := output(t, "buildah", "manifest", "inspect", "localhost/pawl")
	if again := output(t, "buildah", "manifest", "inspect", "localhost/pawl-again"); list != again || !strings.Contains(list, `"arm64"`) {
		t.Errorf("two builds of the image differ, or lack arm64:\n%s\n%s", list, again)
	}
	container := strings.TrimSpace(output(t, "buildah", "from", "localhost/pawl"))
	rootfs := strings.TrimSpace(output(t, "buildah", "mount", container))
	files := strings.Fields(output(t, "find", rootfs, "-type", "f", "-printf", "%P "))
	slices.Sort(files)
	if want := []string{"LICENSE", "THIRD_PARTY_LICENSES", "pawl"}; !slices.Equal(files, want) {
		t.Errorf("the image has the files %s, want %s", files, want)
	}
	if said := output(t, "buildah", "run", container, "--", "/pawl", "version"); !strings.Contains(said, "v"+trial) {
		t.Errorf("pawl version: %s", said)
	}
	for _, command := range [][]string{{"buildah", "run", container, "--", "/pawl", "demo", "--once"}, {"unshare", "-mpf", "sh", "-ec", readOnly, rootfs}} {
		if said := output(t, command[0], command[1:]...); !strings.Contains(said, "All checks passed") {
			t.Errorf("%s: %s", command, said)
		}
	}
	t.Run("processes", func(t *testing.T) { testProcesses(t, container) })
}

// testProcesses starts each long-running command until it is ready.
func testProcesses(t *testing.T, container string) {
	t.Setenv("CI", "true") // a missing server is an error
	t.Setenv("PAWL_TEST_REQUIRE", "1")
	for _, tool := range []toolcache.Tool{toolcache.VersityGW, toolcache.Kinesalite} {
		if _, err := tool.Build(t.Context(), root, os.Stderr); err != nil {
			t.Fatal(err)
		}
	}
	if err := toolcache.BuildPostgres(t.Context(), root, os.Stderr); err != nil {
		t.Fatal(err)
	}
	objects, streams, ledger := servertest.VersityGW(t, servertest.Options{}), servertest.Kinesalite(t), servertest.Postgres(t)
	common := "ledger: " + ledger.URL + "\nobjects: {endpoint: \"" + objects.Endpoint + "\", region: us-east-1, path_style: true}\n"
	for command, config := range map[string]string{
		"run":         "pipelines: [{name: mirror, match: {bucket: " + objects.NewBucket(t) + "}, copy: {to: \"s3://" + objects.NewBucket(t) + "/\"}}]\n",
		"files serve": "files: {to: \"s3://" + objects.NewBucket(t) + "/files/\", listen: \"127.0.0.1:0\", secret: " + strings.Repeat("x", 32) + "}\n",
		"archive run": "archives: [{name: clicks, kinesis: {stream: " + streams.NewStream(t, 2) + ", region: us-east-1, endpoint: \"" + streams.Endpoint + "\"}, to: \"s3://" + objects.NewBucket(t) + "/\"}]\n",
	} {
		t.Run(command, func(t *testing.T) {
			dir := t.TempDir()
			if err := os.WriteFile(filepath.Join(dir, "pawl.yaml"), []byte(common+config), 0o644); err != nil {
				t.Fatal(err)
			}
			address, err := servertest.FreeAddress()
			if err != nil {
				t.Fatal(err)
			}
			args := append([]string{"run", "-v", dir + ":/etc/pawl", "--env", "AWS_ACCESS_KEY_ID=" + objects.AccessKey, "--env", "AWS_SECRET_ACCESS_KEY=" + objects.SecretKey, container, "--", "/pawl"},
				append(strings.Fields(command), "-c", "/etc/pawl/pawl.yaml", "--admin", address)...)
			var log strings.Builder
			cmd := exec.CommandContext(t.Context(), "buildah", args...)
			cmd.Stdout, cmd.Stderr = &log, &log
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			ready := waitReady(t, "http://"+address+"/readyz")
			// The process that listens must not be root's.
			if out, err := exec.CommandContext(t.Context(), "pkill", "-TERM", "-u", "65532", "-f", "^/pawl .*"+address).CombinedOutput(); err != nil {
				t.Errorf("no process of user 65532: %v\n%s", err, out)
			}
			if err := cmd.Wait(); err != nil || !ready {
				t.Errorf("pawl %s: ready %v, %v\n%s", command, ready, err, &log)
			}
		})
	}
}

func waitReady(t *testing.T, url string) bool {
	t.Helper()
	for range 240 {
		if res, err := http.Get(url); err == nil {
			_ = res.Body.Close()
			if res.StatusCode == http.StatusOK {
				return true
			}
		}
		time.Sleep(250 * time.Millisecond)
	}
	return false
}
