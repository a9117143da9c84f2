package filesapi

import (
	"context"
	"net/http"
	"strconv"

	"github.com/graph-gophers/graphql-go"

	"github.com/pawlhq/pawl/files"
)

type partsJSON struct {
	Entity      string   `json:"entity"`
	Size        int64    `json:"size"`
	ContentType string   `json:"contentType"`
	PartSize    int64    `json:"partSize"`
	Parts       []string `json:"parts"` // SHA-256 of each part
}

const (
	maxPut           = 5 << 30 // bytes of one PUT
	minPart          = 5 << 20 // bytes of each part but the last
	maxParts         = 1000
	maxPartsBodySize = 128 << 10
	// partsPerRequest is the number of part URLs that counts as one request.
	partsPerRequest = 20
)

func (u *partsJSON) promise(max int64) (p files.Promise, sums [][32]byte, err error) {
	p = files.Promise{Size: u.Size, ContentType: u.ContentType, PartSize: u.PartSize}
	switch {
	case u.Size < 1:
		return p, nil, newProblem(http.StatusUnprocessableEntity, "a multipart file must have at least one byte")
	case u.PartSize < minPart || u.PartSize > maxPut:
		return p, nil, newProblem(http.StatusUnprocessableEntity, "partSize must be from 5 MiB to 5 GiB")
	case (u.Size-1)/u.PartSize >= maxParts:
		return p, nil, newProblem(http.StatusUnprocessableEntity, "a file has at most 1000 parts: choose a larger partSize")
	case len(u.Parts) != p.Parts():
		return p, nil, newProblem(http.StatusUnprocessableEntity, "parts must have one SHA-256 for each part: want "+strconv.Itoa(p.Parts()))
	}
	sums = make([][32]byte, len(u.Parts))
	for i, text := range u.Parts {
		if sums[i], err = readSum("each element of parts", text); err != nil {
			return p, nil, err
		}
	}
	p.SHA256 = files.CompositeSHA256(sums)
	return p, sums, checkPromise(p, max)
}

type signedPartsJSON struct {
	File *fileJSON `json:"file"`
	// Parts is absent if the bytes have already arrived.
	Parts []sendJSON `json:"parts,omitempty"`
}

func (s *server) uploadParts(q *request) (*answer, error) {
	var u partsJSON
	if err := q.decode(&u, maxPartsBodySize); err != nil {
		return nil, err
	}
	f, signed, err := s.beginParts(q.Context(), q.operation, &u, q.Header.Values("Idempotency-Key"))
	if err != nil {
		return nil, err
	}
	described, err := s.describe(q, &f)
	out := &signedPartsJSON{File: described}
	for _, part := range signed {
		out.Parts = append(out.Parts, sendJSON(part))
	}
	return &answer{http.StatusCreated, out}, err
}

func (s *server) beginParts(ctx context.Context, o *operation, u *partsJSON, keys []string) (f files.File, signed []files.SignedRequest, err error) {
	if err := o.authorize("write", u.Entity); err != nil {
		return f, nil, err
	}
	p, sums, err := u.promise(s.MaxSize)
	if err != nil {
		return f, nil, err
	}
	idempotency, err := idempotencyKey(keys)
	if err != nil {
		return f, nil, err
	}
	if err := s.limit(o.subject).allow(len(sums) / partsPerRequest); err != nil {
		return f, nil, err
	}
	if err := s.limit(o.subject).acquireListSlot(ctx); err != nil {
		return f, nil, err
	}
	f, signed, err = s.Files.UploadParts(ctx, u.Entity, idempotency, p, sums)
	o.file = f.ID
	return f, signed, err
}

type uploadPartsArgs struct {
	Input struct {
		Entity         graphql.ID
		Size           size
		ContentType    string
		PartSize       size
		Parts          []string
		IdempotencyKey *string
	}
}

type uploadPartsNode struct {
	FileID graphql.ID
	File   *fileNode
	Parts  []partNode
}

type partNode struct {
	Method  string
	URL     string
	Headers []header
	Until   graphql.Time
}

func (r *root) UploadParts(ctx context.Context, args uploadPartsArgs) (n *uploadPartsNode, err error) {
	in := args.Input
	u := &partsJSON{string(in.Entity), int64(in.Size), in.ContentType, int64(in.PartSize), in.Parts}
	n = &uploadPartsNode{File: sampleFile(), Parts: []partNode{{Headers: []header{{}}}}}
	err = r.s.resolve(ctx, "upload parts", len(in.Parts), func(o *operation) error {
		f, signed, err := r.s.beginParts(ctx, o, u, keysOf(in.IdempotencyKey))
		if err != nil {
			return err
		}
		node, err := r.s.node(ctx, &f, true)
		n = &uploadPartsNode{FileID: node.FileID, File: node}
		for _, part := range signed {
			n.Parts = append(n.Parts, partNode{part.Method, part.URL, headersOf(part), graphql.Time{Time: part.Until}})
		}
		return err
	})
	return n, err
}
