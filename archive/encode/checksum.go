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

// The footer of a Parquet file contains a checksum, because the library may allocate all memory
// when it reads a damaged file.

const checksumKey = "pawl-sha256"

var zeroChecksum = strings.Repeat("0", 2*sha256.Size)

// checksumWriter buffers the footer, which contains the checksum.
type checksumWriter struct {
	w      io.Writer
	h      hash.Hash
	footer *bytes.Buffer // nil until the library writes the footer
}

func (s *checksumWriter) Write(b []byte) (int, error) {
	s.h.Write(b)
	if s.footer != nil {
		return s.footer.Write(b)
	}
	return s.w.Write(b)
}

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

// verifyChecksum overwrites the checksum in file with the placeholder.
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

func findChecksum(end []byte) []byte {
	const trailer = 8 // length of the footer, and magic bytes
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
