package imageaction

import (
	"bytes"
	"encoding/binary"
	"hash/crc32"
	"image"
	"image/color"
	"image/draw"
	"image/gif"
	"image/jpeg"
	"image/png"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"
)

func paint(m draw.Image, seed uint64) {
	rnd := rand.New(rand.NewPCG(seed, 1))
	b := m.Bounds()
	for y := b.Min.Y; y < b.Max.Y; y++ {
		for x := b.Min.X; x < b.Max.X; x++ {
			c := color.NRGBA64{R: uint16(x * 65535 / b.Dx()), G: uint16(y * 65535 / b.Dy()), B: uint16(rnd.Uint32()), A: 0xffff}
			if (x/7+y/5)%3 == 0 {
				c.R, c.B = 0xffff-c.R, 0x1234
			}
			m.Set(x, y, c)
		}
	}
}

func photo(w, h int) *image.RGBA {
	m := image.NewRGBA(image.Rect(0, 0, w, h))
	paint(m, 7)
	return m
}

func translucentPicture(w, h int) *image.NRGBA {
	m := image.NewNRGBA(image.Rect(0, 0, w, h))
	paint(m, 8)
	for i := 3; i < len(m.Pix); i += 4 {
		m.Pix[i] = uint8(i / 4 % w * 255 / max(1, w-1))
	}
	return m
}

func encodePNG(t testing.TB, m image.Image) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := png.Encode(&b, m); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func encodeJPEG(t testing.TB, m image.Image) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := jpeg.Encode(&b, m, &jpeg.Options{Quality: 95}); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func encodeGIF(t testing.TB, w, h int, frames ...*image.Paletted) []byte {
	t.Helper()
	g := &gif.GIF{Config: image.Config{Width: w, Height: h}}
	for _, f := range frames {
		g.Image = append(g.Image, f)
		g.Delay = append(g.Delay, 10)
	}
	var b bytes.Buffer
	if err := gif.EncodeAll(&b, g); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func testdata(t testing.TB, name string) []byte {
	t.Helper()
	b, err := os.ReadFile(filepath.Join("testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func exif(order binary.AppendByteOrder, o exifOrientation) []byte {
	head := "II*\x00"
	if order == binary.AppendByteOrder(binary.BigEndian) {
		head = "MM\x00*"
	}
	b := order.AppendUint32([]byte(head), 8)
	b = order.AppendUint16(b, 1)
	b = order.AppendUint16(b, 0x0112)
	b = order.AppendUint16(b, 3)
	b = order.AppendUint32(b, 1)
	b = order.AppendUint16(b, uint16(o))
	b = order.AppendUint16(b, 0)
	return order.AppendUint32(b, 0)
}

func jpegWithEXIF(file, tiff []byte) []byte {
	seg := append([]byte("Exif\x00\x00"), tiff...)
	out := append([]byte{0xff, 0xd8, 0xff, 0xe1}, binary.BigEndian.AppendUint16(nil, uint16(len(seg)+2))...)
	return append(append(out, seg...), file[2:]...)
}

func pngWithEXIF(file, tiff []byte) []byte {
	const afterIHDR = 8 + 4 + 4 + 13 + 4
	return append(append(bytes.Clone(file[:afterIHDR]), pngChunk("eXIf", tiff)...), file[afterIHDR:]...)
}

func pngChunk(name string, data []byte) []byte {
	b := binary.BigEndian.AppendUint32(nil, uint32(len(data)))
	b = append(append(b, name...), data...)
	return binary.BigEndian.AppendUint32(b, crc32.ChecksumIEEE(b[4:]))
}

func webpExtended(file []byte, w, h int, flags byte, tiff []byte) []byte {
	_, pixels, _ := bytes.Cut(file, []byte("VP8L"))
	size := binary.LittleEndian.Uint32(pixels)
	pixels = pixels[4:][:size]
	head := []byte{flags, 0, 0, 0, byte(w - 1), byte((w - 1) >> 8), 0, byte(h - 1), byte((h - 1) >> 8), 0}
	body := append([]byte("WEBP"), webpChunk("VP8X", head)...)
	body = append(body, webpChunk("VP8L", pixels)...)
	if tiff != nil {
		body = append(body, webpChunk("EXIF", tiff)...)
	}
	return append(binary.LittleEndian.AppendUint32([]byte("RIFF"), uint32(len(body))), body...)
}

func webpChunk(name string, data []byte) []byte {
	b := binary.LittleEndian.AppendUint32([]byte(name), uint32(len(data)))
	b = append(b, data...)
	if len(data)%2 == 1 {
		b = append(b, 0)
	}
	return b
}

// The scans of scanBomb are empty and take a few bytes each, but need a pass over all blocks.
func scanBomb(side, scans int) []byte {
	segment := func(marker byte, data ...byte) []byte {
		b := binary.BigEndian.AppendUint16([]byte{0xff, marker}, uint16(len(data)+2))
		return append(b, data...)
	}
	b := []byte{0xff, 0xd8}
	b = append(b, segment(0xdb, append([]byte{0}, bytes.Repeat([]byte{1}, 64)...)...)...)
	b = append(b, segment(0xc2, 8, byte(side>>8), byte(side), byte(side>>8), byte(side), 1, 1, 0x11, 0)...)
	oneCode := make([]byte, 16)
	oneCode[0] = 1
	b = append(b, segment(0xc4, append(append([]byte{0x00}, oneCode...), 0)...)...)
	b = append(b, segment(0xc4, append(append([]byte{0x10}, oneCode...), 0xe0)...)...) // AC: a run of 2^14 empty blocks and more
	blocks := (side / 8) * (side / 8)
	b = append(b, segment(0xda, 1, 1, 0x00, 0, 0, 0)...)
	b = append(b, make([]byte, blocks/8+1)...)
	runs := make([]byte, 2*(blocks/(1<<14)+1)) // 0 and fourteen zeros: 2^14 blocks
	for range scans {
		b = append(append(b, segment(0xda, 1, 1, 0x00, 1, 63, 0)...), runs...)
	}
	return append(b, 0xff, 0xd9)
}
