package config

import (
	"cmp"
	"fmt"
	"strings"
)

// Error is one thing that is wrong with a configuration.
type Error struct {
	Line   int    `json:"line,omitzero"`   // from 1; 0 for the file as a whole
	Column int    `json:"column,omitzero"` // from 1, in characters
	Path   string `json:"path,omitzero"`   // of the field: pipelines[1].image.width
	What   string `json:"message"`         // what is wrong and what to do
	unset  bool   // a variable of the environment is not set
	lacks  string // the required field that is not there
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

// Errors is all that is wrong with a configuration. It has at least one error,
// in the order of the file.
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
