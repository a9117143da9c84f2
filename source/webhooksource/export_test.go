package webhooksource

import "time"

// SetReadTimeout shortens the time that a request may take to arrive.
func (s *Source) SetReadTimeout(d time.Duration) { s.limits.header, s.limits.read = d, d }
