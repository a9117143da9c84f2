package bucket

import (
	"fmt"
	"strings"
)

// Check returns an [ErrInvalid] if the object's ContentType, Headers or Metadata
// have what no HTTP header can carry, a line feed say. It is for drivers: whoever
// sends it regardless learns no more than that there was no answer.
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

// control reports what RFC 9110, section 5.5, forbids in a field's value.
func isControl(r rune) bool { return r < ' ' && r != '\t' || r == 0x7f }

// unnamed reports what is no character of a token, which a field's name is by RFC
// 9110, section 5.6.2.
func isNotToken(r rune) bool {
	alphanumeric := r >= '0' && r <= '9' || r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z'
	return !alphanumeric && !strings.ContainsRune("!#$%&'*+-.^_`|~", r)
}
