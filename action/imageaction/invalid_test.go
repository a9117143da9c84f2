package imageaction

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"image"
	"image/color/palette"
	"io"
	"runtime"
	"slices"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"github.com/pawlhq/pawl/worker"
)

func gifHeader(w, h uint16) []byte {
	b := binary.LittleEndian.AppendUint16([]byte("GIF89a"), w)
	return append(binary.LittleEndian.AppendUint16(b, h), 0, 0, 0)
}

func pngHeader(w, h uint32) []byte {
	ihdr := binary.BigEndian.AppendUint32(binary.BigEndian.AppendUint32(nil, w), h)
	return append([]byte("\x89PNG\r\n\x1a\n"), pngChunk("IHDR", append(ihdr, 8, 6, 0, 0, 0))...)
}

func jpegHeader(w, h uint16) []byte {
	b := []byte("\xff\xd8\xff\xe0\x00\x10JFIF\x00\x01\x01\x00\x00\x01\x00\x01\x00\x00\xff\xc0\x00\x0b\x08")
	return append(binary.BigEndian.AppendUint16(binary.BigEndian.AppendUint16(b, h), w), 1, 1, 0x11, 0)
}

func webpHeader() []byte {
	big := []byte{0, 0, 0, 0, 0xff, 0x3f, 0, 0xff, 0x3f, 0} // 16,384 × 16,384
	return append([]byte("RIFF\xff\xff\xff\x7fWEBP"), webpChunk("VP8X", big)...)
}

type endless struct {
	t    *testing.T
	head io.Reader
	read int
}

func (e *endless) Read(b []byte) (int, error) {
	n, err := e.head.Read(b)
	if err == io.EOF {
		clear(b)
		n = len(b)
	}
	if e.read += n; e.read > 64<<10 {
		e.t.Error("read more than the header")
		return 0, io.ErrClosedPipe
	}
	return n, nil
}

func TestHugePicturesAreRejectedByTheirHeader(t *testing.T) {
	for name, head := range map[string][]byte{
		"gif": gifHeader(65535, 65535), "png": pngHeader(1<<31-1, 1<<31-1), "jpeg": jpegHeader(65535, 65535), "webp": webpHeader(),
	} {
		for _, format := range []string{"", formatWebP} {
			t.Run(name+" to "+format, func(t *testing.T) {
				var before, after runtime.MemStats
				runtime.ReadMemStats(&before)
				_, _, err := Convert(t.Context(), &endless{t: t, head: bytes.NewReader(head)}, Config{Format: format})
				runtime.ReadMemStats(&after)
				if !worker.IsPermanent(err) || !strings.Contains(err.Error(), "pixels") && !strings.Contains(err.Error(), "dimension") {
					t.Errorf("error %v, want a permanent one about pixels", err)
				}
				if used := after.TotalAlloc - before.TotalAlloc; used > 256<<10 {
					t.Errorf("took %d bytes of memory", used)
				}
			})
		}
	}
}

func TestLimits(t *testing.T) {
	in := encodePNG(t, photo(20, 10))
	for name, tt := range map[string]struct {
		config Config
		want   string
	}{
		"pixels":        {Config{MaxPixels: 199}, "png picture of 20 × 10 pixels, more than the 199 allowed (max_pixels)"},
		"bytes":         {Config{MaxBytes: int64(len(in) - 1)}, "(max_bytes)"},
		"few bytes":     {Config{MaxBytes: 3}, "(max_bytes)"},
		"at the limits": {Config{MaxPixels: 200, MaxBytes: int64(len(in))}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			_, _, err := Convert(t.Context(), bytes.NewReader(in), tt.config)
			switch {
			case tt.want == "" && err != nil:
				t.Error(err)
			case tt.want != "" && (!worker.IsPermanent(err) || !strings.Contains(err.Error(), tt.want)):
				t.Errorf("error %v, want a permanent one with %q", err, tt.want)
			}
		})
	}
}

func TestInvalidPictures(t *testing.T) {
	frame := image.NewPaletted(image.Rect(0, 0, 8, 8), palette.Plan9)
	outside := encodeGIF(t, 8, 8, frame)
	outside[6], outside[8] = 4, 4
	badCRC := encodePNG(t, photo(9, 9))
	badCRC[len(badCRC)-20] ^= 1
	animated := webpExtended(testdata(t, "lossless-alpha.webp"), 75, 100, 1<<1, nil)
	animated = bytes.Replace(animated, []byte("VP8L"), []byte("ANMF"), 1)
	for name, tt := range map[string]struct {
		in   []byte
		want string
	}{
		"empty":                          {nil, "the object is empty"},
		"text":                           {[]byte("hello, I am a picture"), "not a picture"},
		"svg":                            {[]byte("<svg/>"), "not a picture"},
		"gif frame off the screen":       {outside, "broken gif picture"},
		"gif without pixels":             {gifHeader(0, 0), "0 × 0 pixels"},
		"png with a damaged chunk":       {badCRC, "broken png picture"},
		"png without data":               {pngHeader(10, 10), "broken png picture"},
		"jpeg with only the first bytes": {[]byte{0xff, 0xd8, 0xff}, "broken jpeg picture"},
		"animated webp":                  {animated, "animated WebP"},
	} {
		t.Run(name, func(t *testing.T) {
			_, _, err := Convert(t.Context(), bytes.NewReader(tt.in), Config{Grayscale: true})
			if !worker.IsPermanent(err) || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("error %v, want a permanent one with %q", err, tt.want)
			}
		})
	}
}

func TestTruncatedFilesArePermanent(t *testing.T) {
	frame := image.NewPaletted(image.Rect(0, 0, 16, 16), palette.Plan9)
	for name, in := range map[string][]byte{
		"jpeg": encodeJPEG(t, photo(16, 16)), "png": encodePNG(t, photo(16, 16)), "gif": encodeGIF(t, 16, 16, frame),
		"webp": testdata(t, "lossy.webp")[:600], "webp with alpha": testdata(t, "lossless-alpha.webp"),
	} {
		t.Run(name, func(t *testing.T) {
			for n := 0; n < len(in); n += 1 + len(in)/300 {
				_, _, err := Convert(t.Context(), bytes.NewReader(in[:n]), Config{Grayscale: true})
				if err != nil && !worker.IsPermanent(err) {
					t.Fatalf("after %d bytes: %v is not permanent", n, err)
				}
				if err == nil && n < len(in)*9/10 { // data after the pixels may be missing
					t.Fatalf("after %d of %d bytes: no error", n, len(in))
				}
			}
		})
	}
}

func TestStoreErrorsAreNotPermanent(t *testing.T) {
	broken := errors.New("connection reset")
	in := encodePNG(t, photo(40, 40))
	for _, n := range []int{0, 5, 20, 100, len(in) - 1, len(in)} {
		r := io.MultiReader(bytes.NewReader(in[:n]), iotest.ErrReader(broken))
		_, _, err := Convert(t.Context(), r, Config{})
		if !errors.Is(err, broken) || worker.IsPermanent(err) {
			t.Errorf("failing after %d bytes: %v, want the store's error, not permanent", n, err)
		}
	}
}

func TestCancelledDecoding(t *testing.T) {
	lost := errors.New("lease lost")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(lost)
	for name, in := range map[string][]byte{"png": encodePNG(t, photo(40, 40)), "jpeg": encodeJPEG(t, photo(40, 40))} {
		_, _, err := Convert(ctx, bytes.NewReader(in), Config{})
		if !errors.Is(err, lost) || worker.IsPermanent(err) {
			t.Errorf("%s: error %v, want the cause of the cancellation", name, err)
		}
	}
}

func TestSlowDecodingIsCancelled(t *testing.T) {
	if _, _, err := Convert(t.Context(), bytes.NewReader(scanBomb(64, 3)), Config{}); err != nil {
		t.Fatalf("a small one must be valid: %v", err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	start := time.Now()
	_, _, err := Convert(ctx, bytes.NewReader(scanBomb(4992, maxScans-1)), Config{})
	if !errors.Is(err, context.DeadlineExceeded) || worker.IsPermanent(err) {
		t.Errorf("error %v, want the deadline's", err)
	}
	if took := time.Since(start); took > 20*time.Second {
		t.Errorf("took %v to end", took)
	}
}

func TestScansAreBounded(t *testing.T) {
	for n, want := range map[int]int{0: 1, 3: 4, maxScans - 1: maxScans, maxScans: maxScans + 1, 3000: maxScans + 1} {
		in := scanBomb(64, n)
		if got := scans(in); got != want {
			t.Errorf("%d scans counted of %d", got, n+1)
		}
		_, _, err := Convert(t.Context(), bytes.NewReader(in), Config{Format: formatWebP})
		if bad := want > maxScans; worker.IsPermanent(err) != bad || bad && !strings.Contains(err.Error(), "scans") {
			t.Errorf("a picture of %d scans: %v", n+1, err)
		}
	}
	thumbnail := scanBomb(8, 500)[:60_000/10]
	photo := encodeJPEG(t, photo(20, 20))
	segment := append([]byte{0xff, 0xe1, byte((len(thumbnail) + 2) >> 8), byte(len(thumbnail) + 2)}, thumbnail...)
	if got := scans(slices.Concat(photo[:2], segment, photo[2:])); got != 1 {
		t.Errorf("counted %d scans in a photograph with a thumbnail", got)
	}
}

func TestConfigIsChecked(t *testing.T) {
	for want, c := range map[string]Config{
		"width":      {Width: -1},
		"height":     {Height: -5},
		"avif":       {Format: "avif"},
		"quality":    {Quality: 101},
		"max_pixels": {MaxPixels: -1},
		"max_bytes":  {MaxBytes: -1},
	} {
		if _, err := New(c); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("New(%+v): error %v, want one about %s", c, err, want)
		}
	}
	if _, err := New(Config{}); err != nil {
		t.Error(err)
	}
}

func FuzzConvert(f *testing.F) {
	frame := image.NewPaletted(image.Rect(1, 1, 7, 7), palette.Plan9)
	for _, seed := range [][]byte{
		encodePNG(f, photo(8, 8)), encodePNG(f, translucentPicture(8, 8)), encodeJPEG(f, photo(16, 9)), encodeGIF(f, 8, 8, frame),
		testdata(f, "lossy.webp"), testdata(f, "lossless-alpha.webp"), scanBomb(16, 2),
		jpegWithEXIF(encodeJPEG(f, photo(8, 8)), exif(binary.BigEndian, 7)), pngWithEXIF(encodePNG(f, photo(8, 8)), exif(binary.LittleEndian, 5)),
	} {
		f.Add(seed, false, "", uint16(0))
		f.Add(seed, true, "jpeg", uint16(5))
		f.Add(seed, false, "webp", uint16(0))
	}
	f.Fuzz(func(t *testing.T, in []byte, gray bool, format string, width uint16) {
		c := Config{Grayscale: gray, Format: format, Width: int(width), MaxPixels: 1 << 16, MaxBytes: 1 << 16}
		if _, err := c.withDefaults(); err != nil {
			return
		}
		if _, _, err := Convert(t.Context(), bytes.NewReader(in), c); err != nil && !worker.IsPermanent(err) {
			t.Errorf("error that is not permanent: %v", err)
		}
	})
}
