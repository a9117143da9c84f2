package app

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"strings"
	"unicode/utf8"
)

// PrintJSON prints v on a line of its own.
func (a *App) PrintJSON(v any) error {
	enc := json.NewEncoder(a.Out)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return fmt.Errorf("cannot print: %w", err)
	}
	return nil
}

// KeyJSON returns a key as JSON can hold it, and exactly where it cannot.
func KeyJSON(key string) (text, base string) {
	if utf8.ValidString(key) {
		return key, ""
	}
	return strings.ToValidUTF8(key, "\uFFFD"), base64.StdEncoding.EncodeToString([]byte(key))
}
