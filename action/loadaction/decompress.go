package loadaction

import (
	"bufio"
	"bytes"
	"fmt"
	"io"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"

	"github.com/pawlhq/pawl"
)

// zstdWindow limits the memory of a decoder, in bytes.
const zstdWindow = 64 << 20

// decompress detects gzip and zstd by the first bytes. The returned function releases the
// decoder.
func decompress(r io.Reader, maxBytes int64) (io.Reader, func(), error) {
	in := bufio.NewReader(r)
	magic, err := in.Peek(4)
	if err != nil && err != io.EOF {
		return nil, nil, err
	}
	switch {
	case bytes.HasPrefix(magic, []byte{0x1f, 0x8b}):
		z, err := gzip.NewReader(in)
		if err != nil {
			return nil, nil, pawl.Permanent(fmt.Errorf("the file is damaged: %w", err))
		}
		return &limitedReader{r: decompressor{z}, maxBytes: maxBytes}, func() { _ = z.Close() }, nil // Close repeats errors of Read
	case bytes.Equal(magic, []byte{0x28, 0xb5, 0x2f, 0xfd}):
		z, err := zstd.NewReader(in, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxWindow(zstdWindow))
		if err != nil {
			return nil, nil, pawl.Permanent(fmt.Errorf("the file is damaged: %w", err))
		}
		return &limitedReader{r: decompressor{z}, maxBytes: maxBytes}, z.Close, nil
	}
	return &limitedReader{r: in, maxBytes: maxBytes}, func() {}, nil
}

type decompressor struct{ r io.Reader }

// Read implements [io.Reader].
func (p decompressor) Read(b []byte) (int, error) {
	n, err := p.r.Read(b)
	if err != nil && err != io.EOF {
		err = fmt.Errorf("unpack the file: %w", err) // damaged, or the store closed the stream
	}
	return n, err
}

// The Parquet reader panics on some damaged files.
func recoverDamage(f func() error) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = pawl.Permanent(fmt.Errorf("the file is damaged: %v", p))
		}
	}()
	return f()
}

type limitedReader struct {
	r        io.Reader
	maxBytes int64
	read     int64
}

func tooLarge(maxBytes int64) error {
	return invalidFile("the file is larger than %d bytes, unpacked: split it, or raise max_bytes", maxBytes)
}

// Read implements [io.Reader].
func (b *limitedReader) Read(p []byte) (int, error) {
	n, err := b.r.Read(p)
	if b.read += int64(n); b.read > b.maxBytes {
		return 0, tooLarge(b.maxBytes)
	}
	return n, err
}
