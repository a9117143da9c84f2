package inventory

import (
	"context"
	"crypto/md5"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"

	"github.com/pawlhq/pawl/event"
)

type files func(ctx context.Context, key string) (io.ReadCloser, error)

func folder(dir string) files {
	return func(_ context.Context, key string) (io.ReadCloser, error) {
		for _, base := range []string{dir, filepath.Dir(dir)} {
			for tail, more := key, true; more; _, tail, more = strings.Cut(tail, "/") {
				if name := filepath.FromSlash(tail); filepath.IsLocal(name) {
					f, err := os.Open(filepath.Join(base, name))
					if !errors.Is(err, fs.ErrNotExist) {
						return f, err
					}
				}
			}
		}
		return nil, fmt.Errorf("%w: not found in %s or its parent folder", fs.ErrNotExist, event.Quote(dir))
	}
}

func (get files) readAll(ctx context.Context, key string, most int64) ([]byte, error) {
	r, err := get(ctx, key)
	if err != nil {
		return nil, err
	}
	defer r.Close()
	b, err := io.ReadAll(io.LimitReader(contextReader{ctx, r}, most+1))
	if err == nil && int64(len(b)) > most {
		err = fmt.Errorf("%s is larger than %d bytes", event.Quote(path.Base(key)), most)
	}
	return b, err
}

// fetch returns an open data file after it checked it against the manifest. It copies a remote
// file to dir.
func (get files) fetch(ctx context.Context, p part, dir string) (*os.File, error) {
	r, err := get(ctx, p.Key)
	if err != nil {
		return nil, err
	}
	sum := md5.New()
	f, local := r.(*os.File)
	if local {
		err = p.copyTo(ctx, sum, f, sum)
	} else {
		f, err = createTemp(dir)
		if err == nil {
			err = p.copyTo(ctx, io.MultiWriter(sum, f), r, sum)
		}
		_ = r.Close()
	}
	if err == nil {
		_, err = f.Seek(0, io.SeekStart)
	}
	if err != nil && f != nil {
		_ = f.Close()
	}
	return f, err
}

func (p part) copyTo(ctx context.Context, w io.Writer, r io.Reader, sum hash.Hash) error {
	n, err := io.Copy(w, contextReader{ctx, r})
	switch got := hex.EncodeToString(sum.Sum(nil)); {
	case err != nil:
		return err
	case n != p.Size:
		return fmt.Errorf("it has %d bytes, but the manifest says %d: download it again", n, p.Size)
	case !strings.EqualFold(got, p.MD5):
		return fmt.Errorf("its MD5 is %s, but the manifest says %s: the file is damaged or belongs to another report; download it again", got, event.Quote(p.MD5))
	}
	return nil
}

// createTemp deletes the name at once, if the operating system permits it. The space is then
// freed when the file is closed or the process exits.
func createTemp(dir string) (*os.File, error) {
	f, err := os.CreateTemp(dir, "")
	if err == nil {
		_ = os.Remove(f.Name()) // otherwise Report.Close removes it
	}
	return f, err
}

type contextReader struct {
	ctx context.Context
	io.Reader
}

func (c contextReader) Read(b []byte) (int, error) {
	if err := c.ctx.Err(); err != nil {
		return 0, err
	}
	return c.Reader.Read(b)
}
