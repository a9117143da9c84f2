package main

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func TestLicensesAreAllowed(t *testing.T) {
	text, err := collect(filepath.Join("..", "..", ".."))
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"Go's standard library: BSD-3-Clause\n", "/libwebp: BSD-3-Clause, MIT\n", "modernc.org/sqlite ", "\nMIT License\n"} {
		if !strings.Contains(text, want) {
			t.Errorf("the list lacks %q", want)
		}
	}
}

func TestIdentify(t *testing.T) {
	apache, err := os.ReadFile(filepath.Join("..", "..", "..", "LICENSE"))
	if err != nil {
		t.Fatal(err)
	}
	gpl := []byte("This program is free software: you can redistribute it and/or modify it under the terms of the GNU General Public " +
		"License as published by the Free Software Foundation, either version 3 of the License, or (at your option) any later version.")
	for name, test := range map[string]struct {
		file string
		text []byte
		ids  []string
		err  string
	}{
		"allowed":            {"LICENSE", apache, []string{"Apache-2.0"}, ""},
		"notice":             {"NOTICE", []byte("Copyright The Authors\n"), nil, ""},
		"not allowed":        {"LICENSE", gpl, nil, "is not allowed"},
		"unknown":            {"COPYING", []byte("Do as you like, except on Mondays.\n"), nil, "unknown licence"},
		"allowed, with more": {"LICENSE", append(apache, strings.Repeat("But never on Mondays. ", 500)...), nil, "unknown licence"},
	} {
		t.Run(name, func(t *testing.T) {
			ids, err := identify(test.file, test.text)
			said := ""
			if err != nil {
				said = err.Error()
			}
			if !slices.Equal(ids, test.ids) || (said == "") != (test.err == "") || !strings.Contains(said, test.err) {
				t.Errorf("%v %v, want %v %s", ids, err, test.ids, test.err)
			}
		})
	}
}
