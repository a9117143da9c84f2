package main

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestParse(t *testing.T) {
	for _, tc := range []struct {
		args []string
		want options
	}{
		{nil, options{packages: []string{"./..."}}},
		{[]string{"-build"}, options{build: true, packages: []string{"./..."}}},
		{
			[]string{"-lint", "-race", "-timeout", "20m", "./..."},
			options{lint: true, race: true, packages: []string{"./..."}, args: []string{"-race", "-timeout", "20m"}},
		},
		{
			[]string{"-run", ".*X", "github.com/pawlhq/pawl/engine", "-args", "-lint", "./x"},
			options{packages: []string{"github.com/pawlhq/pawl/engine"}, args: []string{"-run", ".*X", "-args", "-lint", "./x"}},
		},
	} {
		got := parse(tc.args)
		if diff := cmp.Diff(tc.want, got, cmp.AllowUnexported(options{})); diff != "" {
			t.Errorf("parse(%q) (-want +got):\n%s", tc.args, diff)
		}
	}
}
