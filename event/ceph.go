package event

import (
	"encoding/hex"
	"fmt"
	"slices"
	"strings"
)

// cephSequencer parses a hexadecimal dump of a utime_t in memory: two 32-bit words of seconds and
// nanoseconds. Ceph runs on little-endian machines, so it reverses the bytes of each word. Raw returns the
// result.
//
// See populate_event in src/rgw/driver/rados/rgw_notify.cc.
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
