package app

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"strings"
	"unicode/utf8"
)

// PrintJSON prints v as one line of JSON.
func (a *App) PrintJSON(v any) error {
	enc := json.NewEncoder(a.Out)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return fmt.Errorf("print JSON: %w", err)
	}
	return nil
}

// KeyJSON returns a key as a JSON string. If the key is not UTF-8, the string has
// replacement characters, and base is the exact key in base64.
func KeyJSON(key string) (text, base string) {
	if utf8.ValidString(key) {
		return key, ""
	}
	return strings.ToValidUTF8(key, "\uFFFD"), base64.StdEncoding.EncodeToString([]byte(key))
}
