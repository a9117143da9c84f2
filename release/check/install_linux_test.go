package check

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/pawlhq/pawl/internal/toolcache"
)

// need fails the test if a program is missing.
func need(t *testing.T, programs map[string]string) {
	t.Helper()
	if os.Getuid() != 0 {
		t.Fatal("needs root")
	}
	for program, pkg := range programs {
		if _, err := exec.LookPath(program); err != nil {
			t.Fatalf("%s is not installed (Debian: apt-get install %s)", program, pkg)
		}
	}
}

// isolated runs a script in namespaces of its own: no network but loopback, and every process ends with the script.
func isolated(t *testing.T, script string, env ...string) string {
	t.Helper()
	need(t, map[string]string{"unshare": "util-linux", "ip": "iproute2"})
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, "unshare", "--net", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc",
		"bash", "-euc", "ip link set lo up\n"+script)
	cmd.Env = append(os.Environ(), append(env, "DIST="+filepath.Join(dist, "release"), "REPO="+root, "ARCH="+runtime.GOARCH, "VERSION="+trial)...)
	cmd.Dir = t.TempDir()
	said, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, said)
	}
	return string(said)
}

const demoPassed = "All checks passed: 48 of 48 outputs"

func TestArchiveWithoutNetwork(t *testing.T) {
	said := isolated(t, `
cp "$DIST"/pawl_${VERSION}_linux_$ARCH.tar.gz "$DIST"/SHA256SUMS .
sha256sum --check --ignore-missing SHA256SUMS
tar -xzf pawl_${VERSION}_linux_$ARCH.tar.gz
cd pawl_${VERSION}_linux_$ARCH
ls
env -i ./pawl demo --once`)
	wantAll(t, said, ".tar.gz: OK", "LICENSE", "THIRD_PARTY_LICENSES", demoPassed)
}

func TestInstallScript(t *testing.T) {
	need(t, map[string]string{"curl": "curl"})
	mirror := t.TempDir()
	if err := os.CopyFS(mirror, os.DirFS(filepath.Join(dist, "release"))); err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(http.FileServer(http.Dir(mirror)))
	defer server.Close()
	home := t.TempDir()
	if err := errors.Join(os.Chmod(filepath.Dir(home), 0o755), os.Chown(home, 65534, 65534)); err != nil {
		t.Fatal(err)
	}
	run := func(args ...string) (said string, failed, installed bool) {
		cmd := exec.CommandContext(t.Context(), "sh", append([]string{"-s", "--"}, args...)...)
		cmd.Env = []string{"HOME=" + home, "PATH=" + os.Getenv("PATH"), "PAWL_BASE_URL=" + server.URL}
		cmd.Dir, cmd.Stdin = "/", strings.NewReader(output(t, "cat", filepath.Join(mirror, "install.sh")))
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
		b, err := cmd.CombinedOutput()
		_, missing := os.Stat(filepath.Join(home, ".local/bin/pawl"))
		return string(b), err != nil, missing == nil
	}
	if said, failed, installed := run(); failed || !installed || !strings.Contains(said, "pawl v"+trial) {
		t.Errorf("install: installed %v\n%s", installed, said)
	}
	if said, failed, installed := run("--uninstall"); failed || installed {
		t.Errorf("uninstall: installed %v\n%s", installed, said)
	}
	if said, failed, _ := run("--uninstall"); !failed || strings.Contains(said, "removed") {
		t.Errorf("uninstall without an installed program: failed %v\n%s", failed, said)
	}
	archive := filepath.Join(mirror, "pawl_"+trial+"_linux_"+runtime.GOARCH+".tar.gz")
	if err := os.Truncate(archive, 1_000_000); err != nil {
		t.Fatal(err)
	}
	if said, failed, installed := run(); !failed || installed || !strings.Contains(said, "checksum") {
		t.Errorf("with a damaged archive: failed %v, installed %v\n%s", failed, installed, said)
	}
}

// TestDeb installs the package in a new Debian system without Go, and runs the demo and the README's first pipeline
// there. The object store runs outside. The network is cut.
func TestDeb(t *testing.T) {
	need(t, map[string]string{"debootstrap": "debootstrap", "curl": "curl", "systemd-analyze": "systemd", "pkill": "procps"})
	gateway, err := toolcache.VersityGW.Build(t.Context(), root, os.Stderr)
	if err != nil {
		t.Fatal(err)
	}
	system := filepath.Join(t.TempDir(), "debian")
	output(t, "debootstrap", "--variant=minbase", "bookworm", system, "http://deb.debian.org/debian")
	said := isolated(t, `
mount -t proc proc "$SYSTEM/proc"
cp "$DIST"/pawl_${VERSION}_$ARCH.deb "$SYSTEM/pawl.deb"
in_system() { chroot "$SYSTEM" env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin "$@"; }
as_pawl() { chroot --userspec=pawl:pawl "$SYSTEM" env -i -C /var/lib/pawl AWS_REGION=us-east-1 AWS_ACCESS_KEY_ID=pawl AWS_SECRET_ACCESS_KEY=pawl-secret \
  PAWL_WEBHOOK_TOKEN="$(printf pawl:secret | base64)" pawl "$@"; }
s3() { curl -fsS -H 'x-amz-content-sha256: UNSIGNED-PAYLOAD' --aws-sigv4 aws:amz:us-east-1:s3 --user pawl:pawl-secret "$@"; }
! in_system go version

in_system dpkg --install /pawl.deb
in_system getent passwd pawl
test "$(in_system stat -c '%a %G' /etc/pawl/pawl.yaml)" = '640 pawl'
test ! -e "$SYSTEM/etc/systemd/system/multi-user.target.wants/pawl.service"
sed "s,=/usr/bin/pawl,=$SYSTEM/usr/bin/pawl," "$SYSTEM/usr/lib/systemd/system/pawl.service" >pawl.service
systemd-analyze verify ./pawl.service
systemd-analyze security --offline=yes --threshold=25 ./pawl.service >security
in_system pawl demo --once
install -d -o "$(in_system id -u pawl)" -g "$(in_system id -g pawl)" "$SYSTEM/var/lib/pawl"

cp "$REPO/docs/examples/grayscale.yaml" "$SYSTEM/var/lib/pawl/pawl.yaml"
mkdir objects
as_pawl run &
until curl -so /dev/null http://127.0.0.1:8081/events; do sleep 1; done
"$GATEWAY" --access pawl --secret pawl-secret --port 127.0.0.1:7070 --quiet \
  --event-webhook-url http://pawl:secret@127.0.0.1:8081/events posix objects &
until s3 -X PUT http://127.0.0.1:7070/photos; do sleep 1; done
s3 -X PUT http://127.0.0.1:7070/photos-out
s3 -T "$REPO/action/imageaction/testdata/lossy-original.png" http://127.0.0.1:7070/photos/in/cat.png
until s3 -o gray.png http://127.0.0.1:7070/photos-out/gray/cat.png; do sleep 1; done
as_pawl ls
pkill -x pawl
wait %1

in_system dpkg --remove pawl
test ! -e "$SYSTEM/usr/bin/pawl"
test -e "$SYSTEM/etc/pawl/pawl.yaml"
in_system dpkg --purge pawl
test ! -e "$SYSTEM/etc/pawl/pawl.yaml"
echo removed`, "SYSTEM="+system, "GATEWAY="+gateway)
	wantAll(t, said, "x:", demoPassed, "settled  grayscale  s3://photos/in/cat.png", "removed")
}

func TestRPM(t *testing.T) {
	need(t, map[string]string{"rpm": "rpm"})
	for _, arch := range []string{"x86_64", "aarch64"} {
		said := output(t, "rpm", "-qlp", filepath.Join(dist, "release", "pawl-"+trial+"-1."+arch+".rpm"))
		wantAll(t, said, "/usr/bin/pawl\n", "/usr/lib/systemd/system/pawl.service\n", "/etc/pawl/pawl.yaml\n")
	}
}

// TestARM runs the binary for arm64 under emulation. Linux starts its worker processes by binfmt_misc.
func TestARM(t *testing.T) {
	need(t, map[string]string{"qemu-aarch64-static": "qemu-user-static"})
	said := isolated(t, `
mount -t binfmt_misc none /proc/sys/fs/binfmt_misc
if [ ! -e /proc/sys/fs/binfmt_misc/qemu-aarch64 ]; then
  cat /usr/lib/binfmt.d/qemu-aarch64.conf >/proc/sys/fs/binfmt_misc/register
  trap 'echo -1 >/proc/sys/fs/binfmt_misc/qemu-aarch64' EXIT
fi
"$DIST/../bin/linux_arm64/pawl" version
"$DIST/../bin/linux_arm64/pawl" demo --once`)
	wantAll(t, said, "linux/arm64", demoPassed)
}
