package cli

import (
	"encoding/json"
	"fmt"
)

// printJSON prints v on a line of its own.
func (a *app) printJSON(v any) error {
	enc := json.NewEncoder(a.Out)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return fmt.Errorf("cannot print: %w", err)
	}
	return nil
}
