package imageaction

import (
	"encoding/binary"
	"fmt"

	"github.com/pawlhq/pawl"
)

// Encoders write about ten scans. A scan may take a few bytes, but the decoder passes over all
// pixels for it.
const maxScans = 100

func (f *file) checkScans() error {
	if n := scans(f.data); f.format == formatJPEG && n > maxScans {
		return pawl.Permanent(fmt.Errorf("jpeg picture of more than the %d scans allowed", maxScans))
	}
	return nil
}

// https://www.w3.org/Graphics/JPEG/itu-t81.pdf, table B.1
const (
	markerTEM      = 0x01
	markerRST0     = 0xd0
	markerSOI      = 0xd8
	markerEOI      = 0xd9
	markerSOS      = 0xda
	stuffed        = 0x00 // after 0xff: 0xff is data
	markerFollows  = 0xff
	segmentLenSize = 2
)

// scans skips whole segments, because their content, such as a thumbnail, may look like a scan.
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
