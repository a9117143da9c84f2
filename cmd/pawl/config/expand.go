package config

import (
	"errors"
	"fmt"
	"regexp"
	"strings"
)

// variable matches ${NAME} and its escape.
var variable = regexp.MustCompile(`\$?\$\{[A-Za-z_][A-Za-z0-9_]*\}`)

// While the YAML is read, braces of variables are written as these, of which
// YAML thinks nothing: in {secret: ${X}} it would take the braces for a map.
// One character stands for one, so that columns stay right.
const (
	openBrace  = '\uE000'
	closeBrace = '\uE001'
)

var (
	hideBraces = strings.NewReplacer("{", string(openBrace), "}", string(closeBrace))
	showBraces = strings.NewReplacer(string(openBrace), "{", string(closeBrace), "}")
)

// protect hides the braces of variables from YAML.
func protect(raw string) (string, error) {
	if i := strings.IndexAny(raw, string(openBrace)+string(closeBrace)); i >= 0 {
		line := 1 + strings.Count(raw[:i], "\n")
		return "", fmt.Errorf("line %d has a character of private use (U+E000 or U+E001): remove it", line)
	}
	return variable.ReplaceAllStringFunc(raw, hideBraces.Replace), nil
}

// expand replaces ${NAME} by the variable's value and $${ by ${. names are the
// variables used, in order.
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
			return "", names, errors.New(`has "${" without a variable's name: write ${NAME}, or $${ for the text itself`)
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

// unsetError says that a variable is not set.
type unsetError struct{ name string }

func (e *unsetError) Error() string {
	return fmt.Sprintf("the environment variable %s is not set: set it, or write $${%s} for the text itself", e.name, e.name)
}
