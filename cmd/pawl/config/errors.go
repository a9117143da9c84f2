package config

import (
	"cmp"
	"fmt"
	"strings"
)

// Error is one error in a configuration.
type Error struct {
	Line   int    `json:"line,omitzero"`   // line number, from 1; 0 for the whole file
	Column int    `json:"column,omitzero"` // column in characters, from 1
	Path   string `json:"path,omitzero"`   // path of the field, for example pipelines[1].image.width
	What   string `json:"message"`         // the problem and its solution
	unset  bool   // whether the cause is an environment variable that is not set
	lacks  string // name of the required field that is missing
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

// Errors are all errors in a configuration, in the order of the file. There is at least one.
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
