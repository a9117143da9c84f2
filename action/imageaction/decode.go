package imageaction

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"image"
	"image/draw"
	"image/gif"
	"image/jpeg"
	"image/png"
	"io"
	"time"

	"golang.org/x/image/webp"

	"github.com/pawlhq/pawl"
)

const (
	formatJPEG = "jpeg"
	formatPNG  = "png"
	formatGIF  = "gif"
	formatWebP = "webp"
)

// codec replaces the registry of package image, to which any package of the program can add
// codecs.
type codec struct {
	format string
	magic  string // '?' matches any byte
	header func(io.Reader) (image.Config, error)
	decode func(io.Reader) (image.Image, error)
}

var codecs = []codec{
	{formatJPEG, "\xff\xd8\xff", jpeg.DecodeConfig, jpeg.Decode},
	{formatPNG, "\x89PNG\r\n\x1a\n", png.DecodeConfig, png.Decode},
	{formatGIF, "GIF8?a", gif.DecodeConfig, gif.Decode},
	{formatWebP, "RIFF????WEBPVP8", webp.DecodeConfig, webp.Decode},
}

const sniffLen = 15

func codecFor(b []byte) *codec {
	for i := range codecs {
		if codecs[i].matches(b) {
			return &codecs[i]
		}
	}
	return nil
}

func (c *codec) matches(b []byte) bool {
	if len(b) < len(c.magic) {
		return false
	}
	for i := range len(c.magic) {
		if c.magic[i] != b[i] && c.magic[i] != '?' {
			return false
		}
	}
	return true
}

// Some pictures are crafted to take hours to decode.
const decodeTimeout = time.Minute

// errDecodeTimeout is permanent, because another attempt would take just as long.
var errDecodeTimeout = fmt.Errorf("the picture takes longer than %v to decode", decodeTimeout)

// All errors are permanent, unless ctx was canceled.
func (f *file) decode(ctx context.Context) (image.Image, error) {
	if err := f.checkScans(); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeoutCause(ctx, decodeTimeout, pawl.Permanent(errDecodeTimeout))
	defer cancel()
	img, err := f.decodeSafely(&cancelReader{ctx, bytes.NewReader(f.data)})
	switch {
	case ctx.Err() != nil:
		return nil, context.Cause(ctx)
	case err != nil && f.animatedWebP():
		return nil, pawl.Permanent(errors.New("animated WebP pictures are not supported"))
	case err != nil:
		return nil, pawl.Permanent(fmt.Errorf("broken %s picture: %w", f.format, err))
	}
	return img, nil
}

// decodeSafely converts panics, so that an uploaded file cannot end the process.
func (f *file) decodeSafely(r io.Reader) (img image.Image, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("the decoder panicked: %v", p)
		}
	}()
	img, err = codecFor(f.data).decode(r)
	if err != nil {
		return nil, err
	}
	switch m := img.(type) {
	case *image.YCbCr:
		if f.format == formatWebP {
			fullRange(m)
		}
	case *image.NYCbCrA:
		fullRange(&m.YCbCr)
	case *image.Paletted:
		if f.format == formatGIF {
			img = f.onScreen(m)
		}
	}
	return img, nil
}

func (f *file) onScreen(frame *image.Paletted) image.Image {
	screen := image.Rect(0, 0, f.header.Width, f.header.Height)
	if frame.Rect == screen {
		return frame
	}
	m := image.NewNRGBA(screen)
	draw.Draw(m, frame.Rect, frame, frame.Rect.Min, draw.Src)
	return m
}

// fullRange corrects a lossy WebP. VP8 stores luma from 16 to 235 and chroma from 16 to 240, but
// x/image/webp returns them as 0 to 255. https://go.dev/issue/40173
func fullRange(m *image.YCbCr) {
	var luma, chroma [256]uint8
	for i := range 256 {
		luma[i] = clamp(float32(i-16) * (255. / 219))
		chroma[i] = clamp(float32(i-128)*(255./224) + 128)
	}
	for i, v := range m.Y {
		m.Y[i] = luma[v]
	}
	for i, v := range m.Cb {
		m.Cb[i] = chroma[v]
	}
	for i, v := range m.Cr {
		m.Cr[i] = chroma[v]
	}
}

// x/image/webp does not distinguish animations from broken files.
func (f *file) animatedWebP() bool {
	const flags, animation = 20, 1 << 1
	return f.format == formatWebP && len(f.data) > flags && f.data[15] == 'X' && f.data[flags]&animation != 0
}

type cancelReader struct {
	ctx context.Context
	r   io.Reader
}

func (c *cancelReader) Read(b []byte) (int, error) {
	if c.ctx.Err() != nil {
		return 0, context.Cause(c.ctx)
	}
	return c.r.Read(b)
}
