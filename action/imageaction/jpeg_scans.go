package imageaction

import (
	"encoding/binary"
	"fmt"

	"github.com/pawlhq/pawl"
)

// maxScans is how many scans a JPEG may have. Encoders write about ten; each one
// more is another walk over all pixels, for a few bytes of the file.
const maxScans = 100

// checkScans refuses a JPEG that takes long to decode on purpose.
func (f *file) checkScans() error {
	if n := scans(f.data); f.format == formatJPEG && n > maxScans {
		return pawl.Permanent(fmt.Errorf("jpeg picture of more than the %d scans allowed", maxScans))
	}
	return nil
}

// The markers of a JPEG that the count of its scans depends on.
// https://www.w3.org/Graphics/JPEG/itu-t81.pdf, table B.1
const (
	markerTEM      = 0x01
	markerRST0     = 0xd0
	markerSOI      = 0xd8
	markerEOI      = 0xd9
	markerSOS      = 0xda
	stuffed        = 0x00 // follows a byte 0xff that is data
	markerFollows  = 0xff
	segmentLenSize = 2
)

// scans counts the scans of a JPEG, up to one more than allowed. Segments are
// passed by as a whole, since what they hold, a thumbnail say, may look like a scan.
func scans(data []byte) (n int) {
	for i := 0; i+1 < len(data) && n <= maxScans; {
		if data[i] != markerFollows {
			i++
			continue
		}
		switch m := data[i+1]; {
		case m == markerFollows: // a fill byte
			i++
		case m == stuffed, m == markerTEM, m >= markerRST0 && m <= markerEOI: // without a segment
			i += 2
		default:
			if m == markerSOS {
				n++
			}
			i += 2
			if i+segmentLenSize > len(data) {
				return n
			}
			i += max(segmentLenSize, int(binary.BigEndian.Uint16(data[i:])))
		}
	}
	return n
}
