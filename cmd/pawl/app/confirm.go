package app

import (
	"bufio"
	"context"
	"fmt"
	"strings"
)

// Confirm asks a person on a terminal, and reports whether the answer is yes. Where
// no person is there to ask it returns an error that names --yes.
func (a *App) Confirm(ctx context.Context, question string) (bool, error) {
	if !IsTerminal(a.In) || !IsTerminal(a.Err) {
		return false, Usage("%s Nobody is there to answer: say --yes to do it, or --dry-run to look", question)
	}
	fmt.Fprint(a.Err, question+" [y/N] ")
	answer := make(chan string, 1)
	go func() { // ends with the line, or with the process
		line, _ := bufio.NewReader(a.In).ReadString('\n')
		answer <- strings.ToLower(strings.TrimSpace(line))
	}()
	select {
	case <-ctx.Done():
		return false, context.Cause(ctx)
	case s := <-answer:
		return s == "y" || s == "yes", nil
	}
}
