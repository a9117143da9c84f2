package cli

import (
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"

	"github.com/pawlhq/pawl/bucket/s3bucket"
	"github.com/pawlhq/pawl/files"
	"github.com/pawlhq/pawl/internal/config"
	"github.com/pawlhq/pawl/internal/parts"
	"github.com/pawlhq/pawl/internal/servertest"
)

// TestFileIndex: the index is where the configuration says, or in the database of
// the ledger, or in a file beside the configuration.
func TestFileIndex(t *testing.T) {
	for _, test := range []struct{ text, file, want string }{
		{"", "files.db", ""},
		{"index: mine.db", "mine.db", ""},
		{"index: postgres://u:hush@127.0.0.1:1/d", "", "127.0.0.1:1/d schema pawl"},
		{"index: postgresql://u:hush@127.0.0.1:1/d", "", "127.0.0.1:1/d schema pawl"},
		{"index: mysql://u:hush@127.0.0.1:1/d", "", "is no URL of a database of PostgreSQL"},
		{"}\nledger: postgres://u:hush@127.0.0.1:1/l?schema=s", "", "127.0.0.1:1/l schema s"},
		{"index: mine.db}\nledger: postgres://u:hush@127.0.0.1:1/l", "mine.db", ""},
	} {
		name := filepath.Join(t.TempDir(), "pawl.yaml")
		text := "files: {to: s3://b/p/, secret: s, " + test.text
		if !strings.Contains(text, "}") {
			text += "}"
		}
		c, err := parts.Table.Parse(name, []byte(text), os.LookupEnv)
		if err != nil {
			t.Fatal(err)
		}
		index, err := (&machine{config: c}).fileRecords(t.Context(), c.Files, true)
		if err == nil {
			err = index.Close()
		}
		if test.want == "" && err != nil || test.want != "" && (err == nil || !strings.Contains(err.Error(), test.want) || strings.Contains(err.Error(), "hush")) {
			t.Errorf("%s: %v: want %q", test.text, err, test.want)
		}
		made, _ := filepath.Glob(filepath.Join(filepath.Dir(name), "*.db")) // the pattern is right
		if test.file != "" && (len(made) != 1 || filepath.Base(made[0]) != test.file) {
			t.Errorf("%s: made %q: want %s", test.text, made, test.file)
		}
	}
}

// TestFileConfiguration: the configuration says how long the longest upload takes, and
// a prefix has no character that a URL gives a meaning.
func TestFileConfiguration(t *testing.T) {
	service := func(text string) (*files.Service, error) {
		t.Helper()
		name := filepath.Join(t.TempDir(), "pawl.yaml")
		c, err := parts.Table.Parse(name, []byte("files: {secret: s, "+text+"}"), os.LookupEnv)
		if err != nil {
			t.Fatal(err)
		}
		s, err := (&machine{config: c}).fileService(t.Context(), c.Files, nil, true)
		if err == nil {
			err = s.Index.Close()
		}
		return s, err
	}
	for text, want := range map[string]time.Duration{"to: s3://b/p/": time.Hour, "to: s3://b/p/, longest_upload: 3h": 3 * time.Hour} {
		s, err := service(text)
		if err != nil || s.Times.Upload != want {
			t.Errorf("%s: %v: want %s", text, err, want)
		}
	}
	for _, prefix := range []string{"a%2Fb/", "a?b/", "a#b/"} {
		if _, err := service("to: 's3://b/" + prefix + "'"); !isConfig(err) || !strings.Contains(err.Error(), prefix) {
			t.Errorf("%s: %v", prefix, err)
		}
	}
}

func isConfig(err error) bool {
	_, ok := errors.AsType[*config.Errors](err)
	return ok
}

// TestFileStore: a store that is not fit for files is refused at start, and one that is
// down is waited for.
func TestFileStore(t *testing.T) {
	srv := servertest.MinIO(t, servertest.Options{})
	name := srv.NewBucket(t)
	check := func(endpoint string, forgeable bool) error {
		store, err := s3bucket.New(t.Context(), s3bucket.Config{Endpoint: endpoint, PathStyle: true, AccessKey: srv.AccessKey, SecretKey: srv.SecretKey})
		if err != nil {
			t.Fatal(err)
		}
		m := &machine{config: &config.Config{}, objects: store, log: slog.New(slog.DiscardHandler)}
		c := &config.Files{To: config.Location{Bucket: name, Prefix: "files/"}, AcceptForgeableUploads: forgeable}
		return m.checkFiles(t.Context(), c, m.fileObjects(c))
	}
	if err := check(srv.Endpoint, false); !isConfig(err) || !strings.Contains(err.Error(), "STREAMING-UNSIGNED-PAYLOAD-TRAILER") || !strings.Contains(err.Error(), "accept_forgeable_uploads: true") {
		t.Errorf("forgeable: %v", err)
	}
	if err := check(srv.Endpoint, true); err != nil {
		t.Error(err)
	}
	if err := check("http://127.0.0.1:1", false); err != nil {
		t.Errorf("down: %v", err)
	}
	_, err := srv.Client().PutBucketVersioning(t.Context(), &s3.PutBucketVersioningInput{
		Bucket: &name, VersioningConfiguration: &types.VersioningConfiguration{Status: types.BucketVersioningStatusEnabled},
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := check(srv.Endpoint, true); err == nil || !strings.Contains(err.Error(), "suspend its versioning") {
		t.Errorf("versions: %v", err)
	}
}
