package toolcache

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"time"
)

// Build builds the tool if it does not exist. Concurrent builds are safe, because the binary appears
// atomically.
func (t Tool) Build(ctx context.Context, root string, log io.Writer) (string, error) {
	path, err := t.Path(root)
	if err == nil {
		err = t.Missing()
	}
	if err != nil {
		return "", err
	}
	if _, err := os.Stat(path); err == nil {
		return path, nil
	}
	fmt.Fprintf(log, "building %s once, into %s, which takes %s\n", t.Name, path, t.BuildTime)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return "", fmt.Errorf("create the folder for %s: %w", t.Name, err)
	}
	dir, err := os.MkdirTemp(filepath.Dir(path), "building-")
	if err != nil {
		return "", fmt.Errorf("create a folder to build %s in: %w", t.Name, err)
	}
	defer os.RemoveAll(dir)
	built := filepath.Join(dir, t.Name)
	start := time.Now()
	if err := t.compile(ctx, root, built, log); err != nil {
		return "", err
	}
	if err := os.Rename(built, path); err != nil {
		return "", fmt.Errorf("move %s to its folder: %w", t.Name, err)
	}
	fmt.Fprintf(log, "built %s in %s\n", t.Name, time.Since(start).Round(time.Second))
	return path, nil
}

const copyJarsGoal = "org.apache.maven.plugins:maven-dependency-plugin:3.6.1:copy-dependencies"

func (t Tool) fetchJars(ctx context.Context, root, out string) error {
	cmd := exec.CommandContext(ctx, "mvn", "-q", "-B", copyJarsGoal, "-DincludeScope=runtime", "-DoutputDirectory="+out)
	cmd.Dir = t.dir(root)
	if said, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("fetch %s with Maven in %s: %w\n%s", t.Name, cmd.Dir, err, said)
	}
	return nil
}

// The scripts of the packages do not run; only the tool's unpack script does.
func (t Tool) installNode(ctx context.Context, root, out string) error {
	if err := os.Mkdir(out, 0o755); err != nil {
		return fmt.Errorf("create a folder for %s: %w", t.Name, err)
	}
	for _, name := range nodePins {
		pin, err := os.ReadFile(filepath.Join(t.dir(root), name))
		if err == nil {
			err = os.WriteFile(filepath.Join(out, name), pin, 0o600)
		}
		if err != nil {
			return fmt.Errorf("copy the npm package files of %s: %w", t.Name, err)
		}
	}
	cmd := exec.CommandContext(ctx, "npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error")
	cmd.Dir = out
	if said, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("fetch %s with npm: %w\n%s", t.Package, err, said)
	}
	if t.Unpack == "" {
		return nil
	}
	cmd = exec.CommandContext(ctx, "node", "--input-type=module", "--eval", t.Unpack)
	cmd.Dir = out
	if said, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("unpack %s: %w\n%s", t.Package, err, said)
	}
	return nil
}

func (t Tool) createVenv(ctx context.Context, root, out string) error {
	for _, args := range [][]string{
		{"python3", "-m", "venv", out},
		{filepath.Join(out, "bin", "python"), "-m", "pip", "install", "--quiet", "--no-deps", "--requirement", filepath.Join(t.dir(root), pythonPins)},
	} {
		if said, err := exec.CommandContext(ctx, args[0], args[1:]...).CombinedOutput(); err != nil {
			return fmt.Errorf("fetch %s for Python: %w\n%s", t.Name, err, said)
		}
	}
	return nil
}

// compile shows the number of compiled packages. If the build fails, it shows all other output.
func (t Tool) compile(ctx context.Context, root, out string, log io.Writer) error {
	switch {
	case t.Java:
		return t.fetchJars(ctx, root, out)
	case t.Node:
		return t.installNode(ctx, root, out)
	case t.Python:
		return t.createVenv(ctx, root, out)
	}
	cmd := exec.CommandContext(ctx, "go", "build", "-v", "-buildvcs=false", "-ldflags=-s -w", "-o", out, t.Package)
	cmd.Dir = t.dir(root)
	// The caller's workspace and -mod flag concern another module.
	cmd.Env = append(os.Environ(), "GOWORK=off", "GOFLAGS=")
	stderr, err := cmd.StderrPipe()
	if err != nil {
		return fmt.Errorf("build %s: %w", t.Name, err)
	}
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("build %s, is Go installed: %w", t.Name, err)
	}
	p := progress{name: t.Name, log: log, start: time.Now()}
	stop := p.report()
	said := p.read(stderr)
	err = cmd.Wait()
	stop()
	if err != nil {
		return fmt.Errorf("build %s in %s: %w\n%s", t.Name, cmd.Dir, err, said)
	}
	return nil
}

type progress struct {
	name  string
	log   io.Writer
	start time.Time

	mu       sync.Mutex
	packages int
}

func (p *progress) read(r io.Reader) string {
	var said strings.Builder
	lines := bufio.NewScanner(r)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		line := lines.Text()
		if strings.HasPrefix(line, "go: downloading") || !strings.ContainsAny(line, " \t") {
			p.mu.Lock()
			p.packages++
			p.mu.Unlock()
			continue
		}
		fmt.Fprintln(&said, line)
	}
	return said.String()
}

func (p *progress) report() (stop func()) {
	done := make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() {
		tick := time.NewTicker(10 * time.Second)
		defer tick.Stop()
		for {
			select {
			case <-done:
				return
			case <-tick.C:
				p.mu.Lock()
				n := p.packages
				p.mu.Unlock()
				fmt.Fprintf(p.log, "  %s: %s, %d modules and packages\n", p.name, time.Since(p.start).Round(time.Second), n)
			}
		}
	})
	return func() { close(done); wg.Wait() }
}
