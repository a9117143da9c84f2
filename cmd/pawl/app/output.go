package app

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"strings"
	"unicode/utf8"
)

// PrintJSON prints v as one line.
func (a *App) PrintJSON(v any) error {
	enc := json.NewEncoder(a.Out)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return fmt.Errorf("print JSON: %w", err)
	}
	return nil
}

// KeyJSON returns a key for JSON. If it is not UTF-8, text has replacement characters, and base is the key
// in base64.
func KeyJSON(key string) (text, base string) {
	if utf8.ValidString(key) {
		return key, ""
	}
	return strings.ToValidUTF8(key, "\uFFFD"), base64.StdEncoding.EncodeToString([]byte(key))
}
