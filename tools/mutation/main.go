// Command mutation changes the code of the packages that make decisions, one operator at a time, and runs
// the package's tests:
//
//	go run ./tools/mutation [gremlins flags] [packages]
//
// It fails if tests notice less than 85 % of the changes. docs/MUTATION.md explains the others. -short
// reduces tests of random histories, so that the result does not depend on chance. Vet is disabled because
// it is not a test, and cached results because they have no durations.
//
// Gremlins makes the changes in copies of the module. Its configuration is tools/gremlins/gremlins.yaml.
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

// realGo is the path of the real go command. If it is set, this program acts as go.
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
		return fmt.Errorf("create a folder for the go command: %w", err)
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
		// Interrupted gremlins removes its copies.
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

// In this environment, the go command is a link to this program, in dir.
func environment(dir string) ([]string, error) {
	goCommand, err := exec.LookPath("go")
	if err != nil {
		return nil, fmt.Errorf("find the go command, is Go installed: %w", err)
	}
	self, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("find this program: %w", err)
	}
	if err := os.Symlink(self, filepath.Join(dir, filepath.Base(goCommand))); err != nil {
		return nil, fmt.Errorf("replace the go command: %w", err)
	}
	return append(os.Environ(), realGo+"="+goCommand,
		"PATH="+dir+string(os.PathListSeparator)+os.Getenv("PATH"),
		"GOFLAGS="+strings.TrimSpace(os.Getenv("GOFLAGS")+" -short -vet=off -count=1")), nil
}

// runGo runs go with three corrections. If a test does not compile, it returns 2, as gremlins expects: gremlins
// would take the code 1 of go test for a failed test. For the coverage, it omits packages in subfolders,
// because gremlins derives the test timeout from that run. It also widens the coverage.
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
