package sqssource

import "time"

// SetVisibility shortens what a message is kept from others, and how long in all.
func (s *Source) SetVisibility(visibility, held time.Duration) {
	s.limits.visibility, s.limits.held = visibility, held
}
