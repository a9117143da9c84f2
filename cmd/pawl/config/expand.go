package config

import (
	"errors"
	"fmt"
	"regexp"
	"strings"
)

// variable matches ${NAME} and its escape.
var variable = regexp.MustCompile(`\$?\$\{[A-Za-z_][A-Za-z0-9_]*\}`)

// These characters replace the braces of variables while the YAML is parsed. YAML would parse
// the braces in {secret: ${X}} as a map. Each of them replaces one character, so that the
// columns in errors stay correct.
const (
	openBrace  = '\uE000'
	closeBrace = '\uE001'
)

var (
	hideBraces = strings.NewReplacer("{", string(openBrace), "}", string(closeBrace))
	showBraces = strings.NewReplacer(string(openBrace), "{", string(closeBrace), "}")
)

// protect replaces the braces of variables.
func protect(raw string) (string, error) {
	if i := strings.IndexAny(raw, string(openBrace)+string(closeBrace)); i >= 0 {
		line := 1 + strings.Count(raw[:i], "\n")
		return "", fmt.Errorf("line %d contains the private-use character U+E000 or U+E001: remove it", line)
	}
	return variable.ReplaceAllStringFunc(raw, hideBraces.Replace), nil
}

// expand replaces ${NAME} with the value of the variable, and $${ with ${. It returns the names
// of the variables in order.
func expand(text string, lookup func(string) (string, bool)) (value string, names []string, err error) {
	var out strings.Builder
	for {
		before, rest, found := strings.Cut(text, "${")
		if !found {
			return out.String() + text, names, nil
		}
		if strings.HasSuffix(before, "$") {
			out.WriteString(before[:len(before)-1] + "${")
			text = rest
			continue
		}
		name, after, closed := strings.Cut(rest, "}")
		if !closed || !variable.MatchString("${"+name+"}") {
			return "", names, errors.New(`"${" without a variable name: write ${NAME}, or $${ for a literal ${`)
		}
		v, set := lookup(name)
		if !set {
			return "", names, &unsetError{name}
		}
		out.WriteString(before + v)
		names = append(names, name)
		text = after
	}
}

// unsetError is the error of a variable that is not set.
type unsetError struct{ name string }

func (e *unsetError) Error() string {
	return fmt.Sprintf("the environment variable %s is not set: set it, or write $${%s} for the literal text", e.name, e.name)
}
