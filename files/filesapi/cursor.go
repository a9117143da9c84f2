package filesapi

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"net/http"
)

// cursors signs the file ID at the end of a page, so that a cursor is valid only for its entity.
type cursors struct{ secret []byte }

func (c cursors) mac(entity, id string) []byte {
	mac := hmac.New(sha256.New, c.secret)
	mac.Write([]byte(entity + "\x00" + id))
	return mac.Sum(nil)[:16]
}

func (c cursors) sign(entity, id string) string {
	return base64.RawURLEncoding.EncodeToString(append(c.mac(entity, id), id...))
}

func (c cursors) verify(entity, cursor string) (string, error) {
	if cursor == "" {
		return "", nil
	}
	b, err := base64.RawURLEncoding.DecodeString(cursor)
	if err != nil || len(b) < 16 || !hmac.Equal(b[:16], c.mac(entity, string(b[16:]))) {
		return "", newProblem(http.StatusBadRequest, "the cursor does not belong to this list: start without a cursor")
	}
	return string(b[16:]), nil
}
