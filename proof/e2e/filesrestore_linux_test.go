package e2e

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"

	"github.com/pawlhq/pawl/proof/servertest"
)

// The index is restored from a backup that is older than some files. The audit keeps and reports their
// objects.
func TestFilesRestoredIndex(t *testing.T) {
	t.Parallel()
	server := servertest.MinIO(t, servertest.Options{})
	index := filepath.Join(t.TempDir(), "files.db")
	s := serve(t, server, index)
	c := s.client(t)
	for n := range 300 { // the files after the backup are at most 1 % of the objects
		in := &s3.PutObjectInput{Bucket: aws.String(inputs), Key: aws.String(fmt.Sprintf("%snotes-%d", filePrefix, n)), Body: strings.NewReader("a note")}
		if _, err := server.Client().PutObject(t.Context(), in); err != nil {
			t.Fatal(err)
		}
	}
	upload(t, c, "before", 3)
	s.stop(t)
	copyFile(t, index, index+".backup")
	if err := s.slots[0].start(); err != nil {
		t.Fatal(err)
	}
	later := upload(t, c, "after", 2)
	later = append(later, uploadInParts(t, c))
	s.stop(t)
	for _, part := range []string{"-wal", "-shm"} {
		_ = os.Remove(index + part) // absent after a clean shutdown
	}
	copyFile(t, index+".backup", index)

	out, code := s.command(t, "files", "audit")
	for _, id := range later {
		if code != 3 || !strings.Contains(out, "3 orphans (objects or multipart uploads without a row): kept") || !strings.Contains(out, filePrefix+id) {
			t.Fatalf("exit code %d:\n%s\nwant %s named", code, out, id)
		}
	}
	if out, code := s.command(t, "files", "rebuild"); code != 1 || !strings.Contains(out, "--trust-metadata") {
		t.Errorf("exit code %d:\n%s\nwant a rejection, because MinIO accepts forged uploads", code, out)
	}
	out, code = s.command(t, "files", "rebuild", "--trust-metadata")
	if code != 0 || !strings.Contains(out, "3 rows written") || !strings.Contains(out, "files that were deleted after the backup become visible again") {
		t.Errorf("exit code %d:\n%s", code, out)
	}
	if out, code := s.command(t, "files", "audit"); code != 0 {
		t.Errorf("exit code %d:\n%s", code, out)
	}
	if err := s.slots[0].start(); err != nil {
		t.Fatal(err)
	}
	for entity, want := range map[string]int{"before": 3, "after": 2, "parts": 1} {
		if all, err := c.List(t.Context(), entity); err != nil || len(all) != want {
			t.Errorf("%s: %d files, %v: want %d", entity, len(all), err, want)
		}
	}
	s.stop(t)
}

func upload(t *testing.T, c *filesClient, entity string, n int) (ids []string) {
	t.Helper()
	for i := range n {
		f, err := c.Want(t.Context(), http.StatusCreated, http.MethodPost, "/v1/files?entity="+entity,
			map[string]string{"Content-Type": "text/plain", "Idempotency-Key": fmt.Sprint(entity, i)}, fmt.Appendf(nil, "file %d of %s", i, entity))
		if err != nil {
			t.Fatal(err)
		}
		ids = append(ids, f.ID)
	}
	return ids
}

func uploadInParts(t *testing.T, c *filesClient) (id string) {
	t.Helper()
	body := make([]byte, 2*filePart+1)
	signed, err := c.signParts(t.Context(), "parts", "parts", body)
	if err == nil {
		err = c.put(t.Context(), signed, body)
	}
	if err == nil {
		_, err = c.Want(t.Context(), http.StatusOK, http.MethodPost, "/v1/files/"+signed.File.ID+"/complete", nil, nil)
	}
	if err != nil {
		t.Fatal(err)
	}
	return signed.File.ID
}

func copyFile(t *testing.T, from, to string) {
	t.Helper()
	text, err := os.ReadFile(from)
	if err == nil {
		err = os.WriteFile(to, text, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
}

func (s *filesServer) command(t *testing.T, args ...string) (string, int) {
	t.Helper()
	cmd := exec.CommandContext(context.WithoutCancel(t.Context()), s.binary, append(args, "--config", s.config)...)
	cmd.Env = append(append(os.Environ(), "PAWL_LISTEN=127.0.0.1:0", "PAWL_API=127.0.0.1:0"), s.env...)
	out, err := cmd.CombinedOutput()
	if exit, ok := errors.AsType[*exec.ExitError](err); ok {
		return string(out), exit.ExitCode()
	}
	if err != nil {
		t.Fatal(err)
	}
	return string(out), 0
}
