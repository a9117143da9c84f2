package filesapi

import (
	"context"
	"encoding/hex"
	"mime"
	"net/http"
	"regexp"
	"strconv"
	"time"

	"github.com/pawlhq/pawl/files"
)

type fileJSON struct {
	ID          string    `json:"fileId"`
	Entity      string    `json:"entity"`
	State       string    `json:"state"` // pending, indexed, lost or deleted
	Size        int64     `json:"size"`
	ContentType string    `json:"contentType"`
	SHA256      string    `json:"sha256"`
	PartSize    int64     `json:"partSize,omitzero"`
	CreatedAt   time.Time `json:"createdAt"`
	// DownloadURL is set if the file is indexed and the subject may read it.
	DownloadURL string `json:"downloadUrl,omitempty"`
}

func toJSON(f *files.File) *fileJSON {
	return &fileJSON{
		ID: f.ID, Entity: f.Entity, State: f.State.String(), Size: f.Size, ContentType: f.ContentType,
		SHA256: hex.EncodeToString(f.SHA256[:]), PartSize: f.PartSize, CreatedAt: f.CreatedAt,
	}
}

type uploadJSON struct {
	Entity      string `json:"entity"`
	Size        *int64 `json:"size"`
	ContentType string `json:"contentType"`
	SHA256      string `json:"sha256"`
}

func (u *uploadJSON) promise(max int64) (p files.Promise, err error) {
	sum, err := readSum("sha256", u.SHA256)
	if err != nil {
		return p, err
	}
	if u.Size == nil {
		return p, newProblem(http.StatusUnprocessableEntity, "size is missing")
	}
	p = files.Promise{Size: *u.Size, ContentType: u.ContentType, SHA256: sum}
	return p, checkPromise(p, min(max, maxPut))
}

func readSum(name, text string) (sum [32]byte, err error) {
	b, err := hex.DecodeString(text)
	if err != nil || len(b) != len(sum) {
		return sum, newProblem(http.StatusUnprocessableEntity, name+" must be 64 hexadecimal digits")
	}
	return [32]byte(b), nil
}

func checkPromise(p files.Promise, max int64) error {
	if p.Size < 0 || p.Size > max {
		return newProblem(http.StatusUnprocessableEntity, "size must be from 0 to "+strconv.FormatInt(max, 10)+" bytes")
	}
	return checkType(p.ContentType)
}

func checkType(contentType string) error {
	if media, _, err := mime.ParseMediaType(contentType); err != nil || media == "" || !printablePattern.MatchString(contentType) {
		return newProblem(http.StatusUnprocessableEntity, "the content type must be a media type, for example image/jpeg")
	}
	return nil
}

type signedJSON struct {
	File *fileJSON `json:"file"`
	// Upload is absent if the bytes have already arrived.
	Upload *sendJSON `json:"upload,omitempty"`
}

type sendJSON struct {
	Method  string            `json:"method"`
	URL     string            `json:"url"`
	Headers map[string]string `json:"headers"`
	Until   time.Time         `json:"until"`
}

func (s *server) describe(q *request, f *files.File) (*fileJSON, error) {
	out := toJSON(f)
	url, err := s.downloadURL(q.Context(), q.subject, f)
	out.DownloadURL = url
	return out, err
}

func (s *server) upload(q *request) (*answer, error) {
	var u uploadJSON
	if err := q.decode(&u, maxBodySize); err != nil {
		return nil, err
	}
	f, signed, err := s.beginUpload(q.Context(), q.operation, &u, q.Header.Values("Idempotency-Key"))
	if err != nil {
		return nil, err
	}
	described, err := s.describe(q, &f)
	out := &signedJSON{File: described}
	if signed.URL != "" {
		out.Upload = new(sendJSON(signed))
	}
	return &answer{http.StatusCreated, out}, err
}

// printablePattern matches values that every index can store and every header can carry.
var printablePattern = regexp.MustCompile(`^[!-~]([ -~]{0,126}[!-~])?$`)

func idempotencyKey(keys []string) (string, error) {
	switch {
	case len(keys) == 0:
		return "", nil
	case len(keys) > 1 || !printablePattern.MatchString(keys[0]):
		return "", newProblem(http.StatusBadRequest, "invalid Idempotency-Key: want one value of 1 to 128 printable ASCII characters, without a space at either end")
	}
	return keys[0], nil
}

func (s *server) fileHandler(do func(context.Context, *operation, string) (files.File, error)) func(*request) (*answer, error) {
	return func(q *request) (*answer, error) {
		f, err := do(q.Context(), q.operation, q.PathValue("id"))
		if err != nil {
			return nil, err
		}
		out, err := s.describe(q, &f)
		return &answer{http.StatusOK, out}, err
	}
}

type listJSON struct {
	Files []*fileJSON `json:"files"`
	Next  string      `json:"next,omitempty"`
}

func (s *server) list(q *request) (*answer, error) {
	entity, limit := q.PathValue("entity"), 100
	after, _, err := q.param("after")
	if err != nil {
		return nil, err
	}
	text, given, err := q.param("limit")
	if err == nil && given {
		if limit, err = strconv.Atoi(text); err != nil || limit < 1 {
			err = newProblem(http.StatusBadRequest, "limit must be a number from 1 to 1000")
		}
	}
	if err != nil {
		return nil, err
	}
	if err := s.limit(q.subject).acquireListSlot(q.Context()); err != nil {
		return nil, err
	}
	if err := s.limit(q.subject).allow(min(max(limit, 0), maxPage) / filesPerRequest); err != nil {
		return nil, err
	}
	found, err := s.listFiles(q.Context(), q.operation, entity, after, limit)
	if err != nil {
		return nil, err
	}
	out := &listJSON{Files: make([]*fileJSON, len(found.files))}
	for i := range found.files {
		if out.Files[i], err = s.describe(q, &found.files[i]); err != nil {
			return nil, err
		}
	}
	if found.more {
		out.Next = s.cursors.sign(entity, found.files[limit-1].ID)
	}
	return &answer{http.StatusOK, out}, nil
}

type deletedJSON struct {
	Deleted int `json:"deleted"`
	// More is true if the client must repeat the request.
	More bool `json:"more"`
}

func (s *server) deleteAll(q *request) (*answer, error) {
	if err := s.limit(q.subject).allow(maxPage / filesPerRequest); err != nil {
		return nil, err
	}
	out, err := s.deleteFiles(q.Context(), q.operation, q.PathValue("entity"))
	return &answer{http.StatusOK, out}, err
}
