package imageaction

import (
	"bytes"
	"errors"
	"fmt"
	"image"
	"io"

	"github.com/pawlhq/pawl"
)

type file struct {
	data   []byte
	format string
	header image.Config
}

func (f *file) pixels() int64 { return int64(f.header.Width) * int64(f.header.Height) }

func (f *file) outputFormat(c Config) string {
	switch {
	case c.Format != "":
		return c.Format
	case f.format == formatJPEG:
		return formatJPEG
	}
	return formatPNG
}

// load checks the header before it reads the rest. size is the expected number of bytes, or 0.
func load(r io.Reader, size int64, c Config) (*file, error) {
	in := &input{r: r, config: c, remaining: c.MaxBytes}
	var read bytes.Buffer
	tee := io.TeeReader(in, &read)

	// A codec hides the original error, which is in in.err.
	magic := make([]byte, sniffLen)
	n, err := io.ReadFull(tee, magic)
	if in.err != nil {
		return nil, in.err
	}
	codec := codecFor(magic[:n])
	if codec == nil {
		return nil, pawl.Permanent(notPicture(n, err))
	}
	header, err := codec.header(io.MultiReader(bytes.NewReader(magic[:n]), tee))
	if in.err != nil {
		return nil, in.err
	}
	if err != nil {
		return nil, pawl.Permanent(fmt.Errorf("broken %s picture: %w", codec.format, err))
	}
	f := &file{format: codec.format, header: header}
	if err := c.checkPixels(f); err != nil {
		return nil, err
	}
	read.Grow(int(max(0, min(size, c.MaxBytes)-int64(read.Len()))) + bytes.MinRead)
	if _, err := read.ReadFrom(in); err != nil {
		return nil, in.err
	}
	f.data = read.Bytes()
	return f, nil
}

func notPicture(n int, err error) error {
	if n == 0 && errors.Is(err, io.EOF) {
		return errors.New("not a picture: the object is empty")
	}
	return errors.New("not a picture: the format is not JPEG, PNG, GIF or WebP")
}

func (c Config) checkBytes(n int64) error {
	if n > c.MaxBytes {
		return pawl.Permanent(fmt.Errorf("picture of %d bytes, more than the %d allowed (max_bytes)", n, c.MaxBytes))
	}
	return nil
}

func (c Config) checkPixels(f *file) error {
	switch {
	case f.header.Width <= 0 || f.header.Height <= 0:
		return pawl.Permanent(fmt.Errorf("broken %s picture: %d × %d pixels", f.format, f.header.Width, f.header.Height))
	case f.pixels() > c.MaxPixels:
		return pawl.Permanent(fmt.Errorf("%s picture of %d × %d pixels, more than the %d allowed (max_pixels)",
			f.format, f.header.Width, f.header.Height, c.MaxPixels))
	}
	return nil
}

type input struct {
	r         io.Reader
	config    Config
	remaining int64
	err       error // never io.EOF
}

func (in *input) Read(b []byte) (int, error) {
	if in.err != nil {
		return 0, in.err
	}
	// One byte more distinguishes the limit from the end.
	n, err := in.r.Read(b[:min(int64(len(b)), in.remaining+1)])
	in.remaining -= int64(n)
	switch {
	case in.remaining < 0:
		in.err = pawl.Permanent(fmt.Errorf("picture of more than the %d bytes allowed (max_bytes)", in.config.MaxBytes))
		return 0, in.err
	case err != nil && !errors.Is(err, io.EOF):
		in.err = fmt.Errorf("cannot read the picture: %w", err)
		return n, in.err
	}
	return n, err
}
