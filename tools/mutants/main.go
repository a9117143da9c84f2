// Command mutants lists the mutants of proof/mutants, or updates their patches after the sources have
// changed:
//
//	go run ./tools/mutants list
//	go run ./tools/mutants reanchor
//
// Reanchor rewrites each patch that no longer applies. It merges as git rebase does, from the source file
// at the commit that last changed the patch. It prints conflicts, keeps their patches and exits with 3.
package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"

	"github.com/pawlhq/pawl/internal/toolcache"
	"github.com/pawlhq/pawl/proof/mutants"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	code := run(ctx, os.Args[1:])
	stop()
	os.Exit(code)
}

func run(ctx context.Context, args []string) int {
	root, err := toolcache.Root()
	switch strings.Join(args, " ") {
	case "list":
		var all []mutants.Mutant
		if err == nil {
			all, err = mutants.Read(os.DirFS(root))
		}
		if err != nil {
			fmt.Fprintln(os.Stderr, "tools/mutants:", err)
			return 1
		}
		list(os.Stdout, all)
		return 0
	case "reanchor":
		conflicts := 0
		if err == nil {
			conflicts, err = reanchor(ctx, os.Stdout, root)
		}
		switch {
		case err != nil:
			fmt.Fprintln(os.Stderr, "tools/mutants:", err)
			return 1
		case conflicts > 0:
			fmt.Fprintf(os.Stderr, "tools/mutants: %d patches need a manual edit\n", conflicts)
			return 3
		}
		return 0
	}
	fmt.Fprintln(os.Stderr, "usage: go run ./tools/mutants list | reanchor")
	return 2
}

func list(w io.Writer, all []mutants.Mutant) {
	for _, m := range all {
		check := fmt.Sprintf("%d worlds", m.Budget)
		if m.Test != nil {
			check = "go test " + strings.Join(m.Test.Args, " ")
		}
		fmt.Fprintf(w, "%s\n  if missing: %s\n  detected by: %s\n", m.Name, m.Why, check)
		if m.From != "" {
			fmt.Fprintf(w, "  known from: %s\n", m.From)
		}
	}
}
