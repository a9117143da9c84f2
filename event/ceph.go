package event

import (
	"encoding/hex"
	"fmt"
	"slices"
	"strings"
)

// cephSequencer reads the sequencer of Ceph RGW: the memory of a utime_t, two
// 32-bit words of seconds and nanoseconds, dumped in hexadecimal. On the
// little-endian machines that Ceph is run on, text order is not time order, so
// each word is turned round, and Raw shows the result.
//
// See populate_event in src/rgw/driver/rados/rgw_notify.cc. The same function
// puts the object's name into the record as it is, not encoded.
func cephSequencer(raw string) (Sequencer, error) {
	if raw == "" {
		return Sequencer{}, nil
	}
	b, err := hex.DecodeString(raw)
	if err != nil || len(b) != 8 {
		return Sequencer{}, fmt.Errorf("sequencer %s is not the 16 hexadecimal digits of Ceph", quoteShort(raw))
	}
	slices.Reverse(b[:4])
	slices.Reverse(b[4:])
	return ParseSequencer(strings.ToUpper(hex.EncodeToString(b)))
}
