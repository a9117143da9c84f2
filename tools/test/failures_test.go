package main

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// failing is real output of go test.
const failing = `ok  	example.org/x/before	0.015s
2026/11/26 11:22:46 http: proxy error
--- FAIL: TestGroup (0.00s)
    --- FAIL: TestGroup/in (0.00s)
        --- FAIL: TestGroup/in/deep (0.00s)
            x_test.go:10: one
                two
        x_test.go:12: around it
    --- FAIL: TestGroup/long (0.00s)
        x_test.go:14: LONG
--- FAIL: TestWide (0.00s)
2026/11/26 11:22:47 between the lines
    x_test.go:17: WIDE
FAIL
FAIL	example.org/x/a	0.014s
standard output
--- FAIL: TestCrash (0.00s)
panic: boom [recovered, repanicked]

goroutine 6 [running]:
testing.tRunner.func1.2({0x550fc0, 0x594590})
FAIL	example.org/x/b	0.078s
ok  	example.org/x/c	0.015s
FAIL	example.org/x/d [build failed]
FAIL
`

func TestFailures(t *testing.T) {
	said := strings.NewReplacer("LONG", strings.Repeat("again\n            ", 50), "WIDE", strings.Repeat("é", 1000)).Replace(failing)
	var b strings.Builder
	printFailures(&b, failuresIn(said))
	wide := strings.Repeat("é", failureWidth-len("x_test.go:17: "))
	want := `example.org/x/a TestGroup/in
    x_test.go:12: around it
example.org/x/a TestGroup/in/deep
    x_test.go:10: one
    two
example.org/x/a TestGroup/long
    x_test.go:14: again
` + strings.Repeat("    again\n", failureLines-1) + `example.org/x/a TestWide
    x_test.go:17: ` + wide + `
example.org/x/b TestCrash
example.org/x/b panic: boom [recovered, repanicked]
    goroutine 6 [running]:
    testing.tRunner.func1.2({0x550fc0, 0x594590})
example.org/x/d [build failed]
example.org/x/a TestGroup/in: x_test.go:12: around it
example.org/x/a TestGroup/in/deep: x_test.go:10: one
example.org/x/a TestGroup/long: x_test.go:14: again
example.org/x/a TestWide: x_test.go:17: ` + wide + `
example.org/x/b TestCrash
example.org/x/b panic: boom [recovered, repanicked]: goroutine 6 [running]:
example.org/x/d [build failed]
`
	if diff := cmp.Diff(strings.Split("== failed tests\n"+want, "\n"), strings.Split(b.String(), "\n")); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	b.Reset()
	if printFailures(&b, failuresIn("ok  \texample.org/x\t0.015s\n")); b.String() != "" {
		t.Errorf("without a failure: %q", b.String())
	}
}
