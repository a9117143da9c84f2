package encode

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"hash"
	"io"
	"strings"
)

// A Parquet file carries its own checksum among the key-value metadata of its
// footer, because the library, given a damaged file, may allocate all memory.

const checksumKey = "pawl-sha256"

// noSum stands in the place of the checksum while it is taken.
var zeroChecksum = strings.Repeat("0", 2*sha256.Size)

// sealer writes a Parquet file and keeps its end, where the checksum goes.
type checksumWriter struct {
	w      io.Writer
	h      hash.Hash
	footer *bytes.Buffer // nil: the footer is not yet written
}

// Write implements [io.Writer].
func (s *checksumWriter) Write(b []byte) (int, error) {
	s.h.Write(b)
	if s.footer != nil {
		return s.footer.Write(b)
	}
	return s.w.Write(b)
}

// seal writes the end.
func (s *checksumWriter) finish() error {
	end := s.footer.Bytes()
	place := findChecksum(end)
	if string(place) != zeroChecksum {
		return errors.New("the Parquet writer stored the checksum at another position")
	}
	hex.Encode(place, s.h.Sum(nil))
	_, err := s.w.Write(end)
	return err
}

// sealed reports whether a file has the checksum that it carries, and wipes that
// out.
func verifyChecksum(file []byte) bool {
	place := findChecksum(file)
	if place == nil {
		return false
	}
	sum := string(place)
	copy(place, zeroChecksum)
	h := sha256.Sum256(file)
	return sum == hex.EncodeToString(h[:])
}

// sumPlace returns the part of a file's end that is the checksum, or nil.
func findChecksum(end []byte) []byte {
	const trailer = 8 // the footer's length, and a magic word
	if len(end) < trailer {
		return nil
	}
	size := int64(binary.LittleEndian.Uint32(end[len(end)-trailer:]))
	footer := end[max(0, int64(len(end))-trailer-size):]
	i := bytes.LastIndex(footer, []byte(checksumKey))
	if i < 0 {
		return nil
	}
	value := footer[i+len(checksumKey):]
	const header = 2 // of a string: its type, and a length below 128
	if len(value) < header+len(zeroChecksum) {
		return nil
	}
	return value[header:][:len(zeroChecksum)]
}
