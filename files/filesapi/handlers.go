package filesapi

import (
	"encoding/hex"
	"mime"
	"net/http"
	"strconv"
	"time"

	"github.com/pawlhq/pawl/files"
)

// fileJSON is a file, as clients see it.
type fileJSON struct {
	ID          string    `json:"fileId"`
	Entity      string    `json:"entity"`
	State       string    `json:"state"` // pending, indexed, lost or deleted
	Size        int64     `json:"size"`
	ContentType string    `json:"contentType"`
	SHA256      string    `json:"sha256"`
	CreatedAt   time.Time `json:"createdAt"`
	// DownloadURL is there while the file is indexed.
	DownloadURL string `json:"downloadUrl,omitempty"`
}

func toJSON(f *files.File) *fileJSON {
	return &fileJSON{
		ID: f.ID, Entity: f.Entity, State: f.State.String(), Size: f.Size, ContentType: f.ContentType,
		SHA256: hex.EncodeToString(f.SHA256[:]), CreatedAt: f.CreatedAt,
	}
}

// uploadJSON is the body of POST /v1/uploads.
type uploadJSON struct {
	Entity      string `json:"entity"`
	Size        int64  `json:"size"`
	ContentType string `json:"contentType"`
	SHA256      string `json:"sha256"`
}

func (u *uploadJSON) promise(max int64) (p files.Promise, err error) {
	sum, err := hex.DecodeString(u.SHA256)
	if err != nil || len(sum) != len(p.SHA256) {
		return p, refuse(http.StatusUnprocessableEntity, "sha256 must be 64 hexadecimal digits")
	}
	p = files.Promise{Size: u.Size, ContentType: u.ContentType, SHA256: [32]byte(sum)}
	return p, checkPromise(p, max)
}

func checkPromise(p files.Promise, max int64) error {
	if p.Size < 0 || p.Size > max {
		return refuse(http.StatusUnprocessableEntity, "a file has up to "+strconv.FormatInt(max, 10)+" bytes")
	}
	if media, _, err := mime.ParseMediaType(p.ContentType); err != nil || media == "" || len(p.ContentType) > 128 {
		return refuse(http.StatusUnprocessableEntity, "the content type must look like image/jpeg")
	}
	return nil
}

// signedJSON is what a client needs to upload.
type signedJSON struct {
	File *fileJSON `json:"file"`
	// Upload is missing where the bytes have come already.
	Upload *sendJSON `json:"upload,omitempty"`
}

type sendJSON struct {
	Method  string            `json:"method"`
	URL     string            `json:"url"`
	Headers map[string]string `json:"headers"`
	Until   time.Time         `json:"until"`
}

func (s *server) upload(q *request) (*answer, error) {
	var u uploadJSON
	if err := q.decode(&u); err != nil {
		return nil, err
	}
	if err := q.need("write", u.Entity); err != nil {
		return nil, err
	}
	p, err := u.promise(s.MaxSize)
	if err != nil {
		return nil, err
	}
	key, err := q.idempotency()
	if err != nil {
		return nil, err
	}
	f, signed, err := s.Files.Upload(q.Context(), u.Entity, key, p)
	if err != nil {
		return nil, err
	}
	q.file = f.ID
	described, err := s.describe(q.Context(), &f)
	out := &signedJSON{File: described}
	if signed.URL != "" {
		out.Upload = &sendJSON{Method: signed.Method, URL: signed.URL, Headers: signed.Headers, Until: signed.Until}
	}
	return &answer{http.StatusCreated, out}, err
}

// idempotency returns the request's key, which must be short and printable.
func (q *request) idempotency() (string, error) {
	key := q.Header.Get("Idempotency-Key")
	if len(key) > 128 {
		return "", refuse(http.StatusBadRequest, "an idempotency key has up to 128 bytes")
	}
	return key, nil
}

func (s *server) get(q *request) (*answer, error) {
	f, err := s.load(q, "read")
	if err != nil {
		return nil, err
	}
	return s.visible(q, f)
}

// visible answers with a file that its owners may know of.
func (s *server) visible(q *request, f files.File) (*answer, error) {
	if !known(f.State) {
		return nil, files.ErrNotFound
	}
	out, err := s.describe(q.Context(), &f)
	return &answer{http.StatusOK, out}, err
}

func (s *server) complete(q *request) (*answer, error) {
	f, err := s.load(q, "write")
	if err == nil {
		f, err = s.Files.Look(q.Context(), f.ID, true)
	}
	if err != nil {
		return nil, err
	}
	return s.visible(q, f)
}

func (s *server) delete(q *request) (*answer, error) {
	f, err := s.load(q, "write")
	if err == nil {
		f, err = s.Files.Delete(q.Context(), f.ID)
	}
	if err != nil {
		return nil, err
	}
	return s.visible(q, f)
}

func (s *server) undelete(q *request) (*answer, error) {
	f, err := s.load(q, "write")
	if err == nil {
		f, err = s.Files.Undelete(q.Context(), f.ID)
	}
	if err != nil {
		return nil, err
	}
	return s.visible(q, f)
}

// listJSON is a page of files.
type listJSON struct {
	Files []*fileJSON `json:"files"`
	Next  string      `json:"next,omitempty"` // cursor of the next page
}

// maxPage is how many files a page has at most.
const maxPage = 1000

func (s *server) list(q *request) (*answer, error) {
	entity := q.PathValue("entity")
	if err := q.need("read", entity); err != nil {
		return nil, err
	}
	limit := 100
	if text := q.URL.Query().Get("limit"); text != "" {
		n, err := strconv.Atoi(text)
		if err != nil || n < 1 || n > maxPage {
			return nil, refuse(http.StatusBadRequest, "limit must be a number from 1 to 1000")
		}
		limit = n
	}
	after, err := s.cursors.read(entity, q.URL.Query().Get("after"))
	if err != nil {
		return nil, err
	}
	found, err := s.Files.Index.List(q.Context(), entity, after, limit)
	if err != nil {
		return nil, err
	}
	out := &listJSON{Files: make([]*fileJSON, len(found))}
	for i := range found {
		if out.Files[i], err = s.describe(q.Context(), &found[i]); err != nil {
			return nil, err
		}
	}
	if len(found) == limit {
		out.Next = s.cursors.sign(entity, found[limit-1].ID)
	}
	return &answer{http.StatusOK, out}, nil
}

// deletedJSON counts what was deleted.
type deletedJSON struct {
	Deleted int `json:"deleted"`
	// More: there are more files, and the request is to be sent again.
	More bool `json:"more"`
}

func (s *server) deleteAll(q *request) (*answer, error) {
	entity := q.PathValue("entity")
	if err := q.need("write", entity); err != nil {
		return nil, err
	}
	n, err := s.Files.DeleteAll(q.Context(), entity, maxPage)
	return &answer{http.StatusOK, &deletedJSON{n, n == maxPage}}, err
}
