package imageaction

import (
	"bytes"
	"io"

	"github.com/bep/imagemeta"
	"golang.org/x/image/riff"
)

// exifOrientation is the value of EXIF's tag 0x0112.
type exifOrientation int

const uprightOrientation exifOrientation = 1

func (o exifOrientation) swapsSides() bool { return o >= 5 }

// A picture with a missing or damaged tag is upright, and still valid.
func orientation(data []byte, format string) exifOrientation {
	var meta imagemeta.ImageFormat
	switch format {
	case formatJPEG:
		meta = imagemeta.JPEG
	case formatPNG:
		meta = imagemeta.PNG
	case formatWebP:
		meta, data = imagemeta.TIFF, webpEXIF(data)
	default:
		return uprightOrientation
	}
	found := uprightOrientation
	_, err := imagemeta.Decode(imagemeta.Options{
		R:           bytes.NewReader(data),
		ImageFormat: meta,
		Sources:     imagemeta.EXIF,
		ShouldHandleTag: func(tag imagemeta.TagInfo) bool {
			return tag.Namespace == "IFD0" && tag.Tag == "Orientation"
		},
		HandleTag: func(tag imagemeta.TagInfo) error {
			if v, ok := tag.Value.(uint16); ok && 1 <= v && v <= 8 {
				found = exifOrientation(v)
			}
			return imagemeta.ErrStopWalking
		},
	})
	if err != nil {
		return uprightOrientation
	}
	return found
}

// webpEXIF returns the EXIF block, a TIFF file, or nil. imagemeta 1.0.1 does not find it after a
// chunk of odd length.
func webpEXIF(data []byte) []byte {
	_, chunks, err := riff.NewReader(bytes.NewReader(data))
	if err != nil {
		return nil
	}
	for {
		id, _, chunk, err := chunks.Next()
		if err != nil {
			return nil
		}
		if id != (riff.FourCC{'E', 'X', 'I', 'F'}) {
			continue
		}
		block, err := io.ReadAll(chunk)
		if err != nil {
			return nil
		}
		return bytes.TrimPrefix(block, []byte("Exif\x00\x00")) // as in JPEG; some programs write it in WebP too
	}
}

func (r *raster) orient(o exifOrientation) *raster {
	if o == uprightOrientation {
		return r
	}
	w, h := r.w, r.h
	if o.swapsSides() {
		w, h = h, w
	}
	out := newRaster(w, h, r.n)
	// A step to the right in the output is dx in the input, and a step down is dy.
	start, dx, dy := r.traversal(o)
	for y := range h {
		from := start + y*dy
		row := out.pix[y*out.stride:][:w*r.n]
		for to := 0; to < len(row); to += r.n {
			copy(row[to:to+r.n], r.pix[from:])
			from += dx
		}
	}
	return out
}

// traversal returns the index of the output's top left pixel, and the steps to the right and down.
func (r *raster) traversal(o exifOrientation) (start, dx, dy int) {
	right, down := r.n, r.stride
	lastX, lastY := (r.w-1)*right, (r.h-1)*down
	switch o {
	case 2: // mirrored
		return lastX, -right, down
	case 3: // upside down
		return lastX + lastY, -right, -down
	case 4: // mirrored and upside down
		return lastY, right, -down
	case 5: // mirrored along the diagonal from the top left
		return 0, down, right
	case 6: // rotated: turn clockwise
		return lastY, -down, right
	case 7: // mirrored along the other diagonal
		return lastX + lastY, -down, -right
	case 8: // rotated: turn counter-clockwise
		return lastX, down, -right
	}
	return 0, right, down
}
