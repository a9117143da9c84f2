//go:build !race

package archive

import "time"

const played = 2000

// SickTime is how long a worker cannot store in TestSickWorker, in virtual time.
const SickTime = 20 * time.Minute
