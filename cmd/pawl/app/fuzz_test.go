package app

import (
	"errors"
	"slices"
	"strconv"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/pawlhq/pawl/event"
)

// Each candidate, printed and parsed again, must be among its own candidates.
func FuzzObjectCandidates(f *testing.F) {
	for _, seed := range []string{
		"s3://b/k", "s3://b//k", "s3://b/a b+c/..", `"s3://b/a\nb"`, `"s3://b/a\x3fversionId=1"`, `"s3://b/a b?versionId=1"`,
		`s3://b/a\nb`, `s3://b/a?versionId=1`, "s3://b/it's", "s3://b/$x`y`", "", "s3://", `"`, `""`, `"s3://b/\q"`, "http://b/k",
		"s3://b/a?versionId=\\?versionId=\"", "s3://\x1b[31m/\xff\u202e", `s3://b/\ufffd`,
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, arg string) {
		checkPrintable(t, Printable(arg))
		checkPrintable(t, OneLine(arg, 80))
		all, err := ObjectCandidates(arg)
		if err != nil {
			checkPrintable(t, err.Error())
			if f, ok := errors.AsType[*Failure](err); !ok || f.Code != ExitUsage || len(all) > 0 {
				t.Errorf("%v with %v", err, all)
			}
			return
		}
		for _, o := range all {
			if o.Bucket == "" || strings.Contains(o.Bucket, "/") || o.Key == "" {
				t.Errorf("%q names %#v", arg, o)
			}
			pasted, ok := unquoteShell(ShellQuote(o))
			if !ok {
				t.Fatalf("%s is not one word for a shell", ShellQuote(o))
			}
			checkPrintable(t, pasted)
			checkCandidates(t, pasted, o)
			checkCandidates(t, o.String(), o)
			o.VersionID += arg
			checkCandidates(t, o.String(), o)
		}
	})
}

func checkPrintable(t *testing.T, s string) {
	t.Helper()
	if !utf8.ValidString(s) || strings.ContainsFunc(s, func(r rune) bool { return !strconv.IsPrint(r) }) {
		t.Errorf("%q is not printable on a terminal", s)
	}
}

func checkCandidates(t *testing.T, arg string, o event.Object) {
	t.Helper()
	if all, err := ObjectCandidates(arg); err != nil || !slices.Contains(all, o) {
		t.Errorf("%q is parsed as %q, %v, want %q among them", arg, all, err, o)
	}
}

// plain needs no quotes in shells.
const plain = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789:/._-+=@%,"

// In a POSIX shell, text within single quotes is literal, and a backslash outside them escapes the next
// character.
func unquoteShell(word string) (text string, ok bool) {
	var out strings.Builder
	for word != "" {
		switch c := word[0]; {
		case c == '\'':
			inner, after, closed := strings.Cut(word[1:], "'")
			if !closed {
				return "", false
			}
			out.WriteString(inner)
			word = after
		case c == '\\' && len(word) > 1:
			out.WriteByte(word[1])
			word = word[2:]
		case strings.IndexByte(plain, c) >= 0:
			out.WriteByte(c)
			word = word[1:]
		default:
			return "", false
		}
	}
	return out.String(), true
}
