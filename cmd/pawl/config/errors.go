package config

import (
	"cmp"
	"fmt"
	"strings"
)

// Error is one error in a configuration.
type Error struct {
	Line   int    `json:"line,omitzero"`   // from 1; 0 for the whole file
	Column int    `json:"column,omitzero"` // from 1, in characters
	Path   string `json:"path,omitzero"`   // of the field, for example pipelines[1].image.width
	What   string `json:"message"`         // the problem and its solution
	unset  bool   // an environment variable is not set
	lacks  string // the missing required field
}

func (e *Error) Error() string {
	var s strings.Builder
	if e.Line > 0 {
		fmt.Fprintf(&s, "line %d, column %d: ", e.Line, e.Column)
	}
	if e.Path != "" {
		s.WriteString(e.Path + ": ")
	}
	s.WriteString(e.What)
	return s.String()
}

func (e *Error) compare(o *Error) int {
	return cmp.Or(cmp.Compare(e.Line, o.Line), cmp.Compare(e.Column, o.Column))
}

// Errors are all errors in a configuration, at least one, in the order of the file.
type Errors struct {
	File string
	List []*Error
}

func (e *Errors) Error() string {
	if len(e.List) == 1 {
		return e.File + ": " + e.List[0].Error()
	}
	var s strings.Builder
	fmt.Fprintf(&s, "%s has %d errors:", e.File, len(e.List))
	for _, one := range e.List {
		s.WriteString("\n  " + one.Error())
	}
	return s.String()
}
