// Command mutation changes the code of the packages that decide, one operator
// at a time, and runs the package's tests after each change. A change that no
// test notices is a rule that no test holds:
//
//	go run ./tools/mutation [gremlins flags] [packages]
//
// It fails where fewer than 85 % of the changes are noticed. docs/MUTATION.md
// explains those that are not. With -short, tests of random histories play few
// of them, so that what is noticed does not depend on luck. Vet is no test,
// and a result from the cache says nothing of the time that tests take.
//
// The changes are made by gremlins, in copies of the module. The pin is
// tools/gremlins, and gremlins.yaml beside it says which changes are made.
package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/pawlhq/pawl/internal/toolcache"
)

// realGo tells this program, called as go, where the go command is.
const realGo = "PAWL_MUTATION_GO"

func main() {
	if goCommand := os.Getenv(realGo); goCommand != "" {
		os.Exit(runGo(goCommand, os.Args[1:]))
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, os.Args[1:])
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "tools/mutation:", err)
		os.Exit(1)
	}
}

// run changes each package, be there survivors in the one before or not.
func run(ctx context.Context, args []string) error {
	flags, packages := parse(args)
	root, err := toolcache.Root()
	if err != nil {
		return err
	}
	gremlins, err := toolcache.Gremlins.Build(ctx, root, os.Stdout)
	if err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "pawl-mutation-")
	if err != nil {
		return fmt.Errorf("making a folder for the go command: %w", err)
	}
	defer os.RemoveAll(dir)
	env, err := environment(dir)
	if err != nil {
		return err
	}
	var failed error
	for _, p := range packages {
		fmt.Printf("== %s\n", p)
		args := append([]string{"unleash", "--config", filepath.Join(root, "tools", "gremlins", "gremlins.yaml")}, flags...)
		cmd := exec.CommandContext(ctx, gremlins, append(args, p)...)
		cmd.Dir, cmd.Env, cmd.Stdout, cmd.Stderr = root, env, os.Stdout, os.Stderr
		// Interrupted and not killed, so that it removes its copies.
		cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
		cmd.WaitDelay = time.Minute
		if err := cmd.Run(); err != nil {
			failed = errors.Join(failed, fmt.Errorf("%s: %w", p, err))
		}
		if ctx.Err() != nil {
			break
		}
	}
	return failed
}

// parse tells packages from flags of gremlins.
func parse(args []string) (flags, packages []string) {
	for _, arg := range args {
		if strings.HasPrefix(arg, "./") {
			packages = append(packages, arg)
		} else {
			flags = append(flags, arg)
		}
	}
	if len(packages) == 0 {
		packages = []string{"./event", "./ledger", "./engine"}
	}
	return flags, packages
}

// environment puts this program in the place of the go command, by a link in
// dir.
func environment(dir string) ([]string, error) {
	goCommand, err := exec.LookPath("go")
	if err != nil {
		return nil, fmt.Errorf("is Go installed? %w", err)
	}
	self, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("finding this program: %w", err)
	}
	if err := os.Symlink(self, filepath.Join(dir, filepath.Base(goCommand))); err != nil {
		return nil, fmt.Errorf("standing in for the go command: %w", err)
	}
	return append(os.Environ(), realGo+"="+goCommand,
		"PATH="+dir+string(os.PathListSeparator)+os.Getenv("PATH"),
		"GOFLAGS="+strings.TrimSpace(os.Getenv("GOFLAGS")+" -short -vet=off -count=1")), nil
}

// runGo runs the go command for gremlins, with three corrections. It returns the
// exit code 2 where a test did not compile, which gremlins takes for a change
// that makes no program: go test says 1, as for a test that failed, and the
// change would count as noticed. It measures the coverage, and with it the time
// that tests may take, without the packages in subfolders. And it widens that
// coverage.
func runGo(goCommand string, args []string) int {
	profile := slices.Index(args, "-coverprofile") + 1
	if profile > 0 {
		last := len(args) - 1
		args[last] = strings.TrimSuffix(args[last], "/...")
	}
	var out bytes.Buffer
	cmd := exec.Command(goCommand, args...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, io.MultiWriter(os.Stdout, &out), os.Stderr
	err := cmd.Run()
	if exit, ok := errors.AsType[*exec.ExitError](err); ok {
		if bytes.Contains(out.Bytes(), []byte("[build failed]")) {
			return 2
		}
		return exit.ExitCode()
	}
	if err == nil && profile > 0 {
		err = widen(args[profile])
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "tools/mutation:", err)
		return 3
	}
	return 0
}
