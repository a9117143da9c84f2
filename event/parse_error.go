package event

import (
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

func (p *parser) malformed(format string, args ...any) error {
	return &ParseError{ErrMalformed, p.batch.Dialect, p.record, fmt.Errorf(format, args...)}
}

func (p *parser) malformedObject(o Object, err error) error {
	if o.Bucket == "" || o.Key == "" {
		return p.malformed("%w", err)
	}
	name := o.String()
	if len(name) > MaxKey { // quoted
		name = quoteShort("s3://" + o.Bucket + "/" + o.Key)
	}
	return p.malformed("%s: %w", name, err)
}

// If the caller requested a dialect, the payload is malformed instead.
func (p *parser) unknownDialect(format string, args ...any) error {
	if p.requested != Detect {
		return p.malformed(format, args...)
	}
	return &ParseError{ErrUnknownDialect, Detect, p.record, fmt.Errorf(format, args...)}
}

func (p *parser) tooMany() error {
	err := fmt.Errorf("more than %d records", MaxRecords)
	return &ParseError{ErrTooLarge, p.batch.Dialect, -1, err}
}

func (p *parser) parseError(err error) *ParseError {
	refused, ok := errors.AsType[*ParseError](err)
	if !ok {
		refused = &ParseError{ErrMalformed, p.batch.Dialect, p.record, describe(err)}
	}
	if p.wrapped {
		refused.Err = fmt.Errorf("in the SNS message: %w", refused.Err)
	}
	return refused
}

// The text of the decoder's errors may repeat the payload unquoted and without limit.
func describe(err error) error {
	if e, ok := errors.AsType[*jsontext.SyntacticError](err); ok {
		switch {
		case errors.Is(e.Err, io.ErrUnexpectedEOF) && e.ByteOffset == 0:
			return fmt.Errorf("the payload is empty: %w", e.Err)
		case errors.Is(e.Err, io.ErrUnexpectedEOF):
			return fmt.Errorf("the JSON is cut off after %d bytes: %w", e.ByteOffset, e.Err)
		case errors.Is(e.Err, jsontext.ErrDuplicateName):
			return fmt.Errorf("name %s occurs twice: %w", quoteShort(string(e.JSONPointer)), e.Err)
		}
		// The decoder's text is quoted, except for U+FFFD, which stands for invalid UTF-8.
		return fmt.Errorf("JSON at byte %d: %s", e.ByteOffset, strings.ReplaceAll(e.Err.Error(), "\uFFFD", `\ufffd`))
	}
	if e, ok := errors.AsType[*json.SemanticError](err); ok {
		if e.Err != nil {
			return fmt.Errorf("%s: %w", quoteShort(string(e.JSONPointer)), e.Err)
		}
		return fmt.Errorf("%s is a JSON %s", quoteShort(string(e.JSONPointer)), e.JSONKind)
	}
	return err
}

func quoteShort(s string) string {
	const maxLen = 100
	if len(s) > maxLen {
		return Quote(s[:maxLen]) + "..."
	}
	return Quote(s)
}
