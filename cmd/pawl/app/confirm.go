package app

import (
	"bufio"
	"context"
	"fmt"
	"strings"
)

// Confirm asks on the terminal. Without one, it returns an error that names --yes.
func (a *App) Confirm(ctx context.Context, question string) (bool, error) {
	if !IsTerminal(a.In) || !IsTerminal(a.Err) {
		return false, Usage("%s No terminal to confirm: use --yes to proceed, or --dry-run to count", question)
	}
	fmt.Fprint(a.Err, question+" [y/N] ")
	answer := make(chan string, 1)
	go func() { // ends after one line, or with the process
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
