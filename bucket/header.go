package bucket

import (
	"fmt"
	"strings"
)

// Check returns [ErrInvalid] if an HTTP header cannot contain ContentType, Headers or Metadata.
func (o *Object) Check() error {
	for _, field := range []struct{ name, value string }{
		{"content type", o.ContentType},
		{"Cache-Control", o.Headers.CacheControl},
		{"Content-Disposition", o.Headers.ContentDisposition},
		{"Content-Encoding", o.Headers.ContentEncoding},
		{"Content-Language", o.Headers.ContentLanguage},
	} {
		if strings.ContainsFunc(field.value, isControl) {
			return fmt.Errorf("%w: %s %q has a control character, which an HTTP header cannot contain", ErrInvalid, field.name, field.value)
		}
	}
	for name, value := range o.Metadata {
		switch {
		case name == "" || strings.ContainsFunc(name, isNotToken):
			return fmt.Errorf("%w: metadata name %q is not a valid HTTP header name", ErrInvalid, name)
		case strings.ContainsFunc(value, isControl):
			return fmt.Errorf("%w: metadata %s: %q has a control character, which an HTTP header cannot contain", ErrInvalid, name, value)
		}
	}
	return nil
}

// isControl reports whether RFC 9110, section 5.5, forbids r in a field value.
func isControl(r rune) bool { return r < ' ' && r != '\t' || r == 0x7f }

// isNotToken reports whether RFC 9110, section 5.6.2, forbids r in a field name.
func isNotToken(r rune) bool {
	alphanumeric := r >= '0' && r <= '9' || r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z'
	return !alphanumeric && !strings.ContainsRune("!#$%&'*+-.^_`|~", r)
}
