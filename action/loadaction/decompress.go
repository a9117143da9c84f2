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

// zstdWindow bounds what a file may have a decoder keep in memory.
const zstdWindow = 64 << 20

// unpack returns the plain content of a file, which is plain, gzip or zstd by its
// first bytes, and no more than so many bytes of it.
func decompress(r io.Reader, most int64) (io.Reader, func(), error) {
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
		return &limitedReader{r: decompressor{z}, most: most}, func() { _ = z.Close() }, nil // it only reports what Read did
	case bytes.Equal(magic, []byte{0x28, 0xb5, 0x2f, 0xfd}):
		z, err := zstd.NewReader(in, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxWindow(zstdWindow))
		if err != nil {
			return nil, nil, pawl.Permanent(fmt.Errorf("the file is damaged: %w", err))
		}
		return &limitedReader{r: decompressor{z}, most: most}, z.Close, nil
	}
	return &limitedReader{r: in, most: most}, func() {}, nil
}

// packed explains that a packed file is damaged.
type decompressor struct{ r io.Reader }

// Read implements [io.Reader].
func (p decompressor) Read(b []byte) (int, error) {
	n, err := p.r.Read(b)
	if err != nil && err != io.EOF {
		err = fmt.Errorf("unpack the file: %w", err) // or the store closed the stream
	}
	return n, err
}

// undamaged takes a panic for damage: what reads Parquet trusts the file in places.
func recoverDamage(f func() error) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = pawl.Permanent(fmt.Errorf("the file is damaged: %v", p))
		}
	}()
	return f()
}

// bounded ends a file that is too large.
type limitedReader struct {
	r    io.Reader
	most int64
	read int64
}

func tooLarge(most int64) error {
	return invalidFile("the file is larger than %d bytes, unpacked: split it, or raise max_bytes", most)
}

// Read implements [io.Reader].
func (b *limitedReader) Read(p []byte) (int, error) {
	n, err := b.r.Read(p)
	if b.read += int64(n); b.read > b.most {
		return 0, tooLarge(b.most)
	}
	return n, err
}
