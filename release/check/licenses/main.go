// Command licenses prints the licences of the third-party code in the binary pawl, on all platforms of a release. It
// fails if a licence is missing, unknown, or not in the list of allowed ones:
//
//	go -C release/check run ./licenses >THIRD_PARTY_LICENSES
package main

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"log"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/google/licensecheck"
)

// allowed are SPDX identifiers.
var allowed = []string{"Apache-2.0", "BSD-2-Clause", "BSD-3-Clause", "ISC", "MIT", "MIT-0", "MPL-2.0"}

// reviewed are the licences of texts that a person has read, by the start of the text's SHA-256.
var reviewed = map[string][]string{
	"00c31061d11a7d28": {"Apache-2.0", "MIT-0"},        // aws-lambda-go: names its two other files
	"5ae5bee3072a8413": {},                             // modernc.org/memory: the logo, which is not in the binary
	"8438c9c89b849131": {"public domain"},              // SQLite
	"f597097efe3d9702": {"BSD-3-Clause", "MIT"},        // modernc.org/libc: Go, musl and others
	"4194f8e7119be72b": {"Apache-2.0", "BSD-3-Clause"}, // modernc.org/sqlite: of its modules, which are also listed here
}

const recognized = 80 // percent of a text

func main() {
	log.SetFlags(0)
	text, err := collect(filepath.Join("..", ".."))
	if err != nil {
		log.Fatal(err)
	}
	fmt.Print(text)
}

// list prints the module, its folder, and the folder of each package. Packages of Pawl count as modules.
const list = `{{with .Module}}{{if .Main}}{{$.ImportPath}}|{{$.Dir}}{{else}}{{.Path}} {{.Version}}|{{.Dir}}{{end}}|{{$.Dir}}{{end}}`

var licenseFile = regexp.MustCompile(`(?i)^((un)?licen[cs]e|copying|notice|patents)[^_]*$|^licen[cs]e_`)

type licenses struct {
	ids    map[string][]string // by module
	owners map[string][]string // modules by text
	done   map[string]bool     // by folder
}

// collect returns a line for each module, and then each text once.
func collect(root string) (string, error) {
	all := licenses{make(map[string][]string), make(map[string][]string), make(map[string]bool)}
	goroot, err := exec.Command("go", "env", "GOROOT").Output()
	if err != nil {
		return "", fmt.Errorf("go env: %w", err)
	}
	standard := strings.TrimSpace(string(goroot))
	errs := []error{all.add("Go's standard library", standard, standard)}
	for _, platform := range []string{"linux/amd64", "linux/arm64", "darwin/amd64", "darwin/arm64", "windows/amd64", "windows/arm64"} {
		goos, arch, _ := strings.Cut(platform, "/")
		cmd := exec.Command("go", "list", "-deps", "-f", list, "./cmd/pawl")
		cmd.Dir, cmd.Stderr, cmd.Env = root, os.Stderr, append(os.Environ(), "CGO_ENABLED=0", "GOOS="+goos, "GOARCH="+arch)
		out, err := cmd.Output()
		if err != nil {
			return "", fmt.Errorf("go list: %w", err)
		}
		for line := range strings.Lines(string(out)) {
			if p := strings.Split(strings.TrimSpace(line), "|"); p[0] != "github.com/pawlhq/pawl" {
				errs = append(errs, all.add(p[0], p[1], p[2]))
			}
		}
	}
	var b strings.Builder
	b.WriteString("Licences of the third-party code in pawl\n\n")
	for _, module := range slices.Sorted(maps.Keys(all.ids)) {
		ids := all.ids[module]
		if len(ids) == 0 && !strings.HasPrefix(module, "github.com/pawlhq/pawl/") {
			errs = append(errs, fmt.Errorf("%s has no licence", module))
		}
		if len(ids) > 0 {
			fmt.Fprintf(&b, "%s: %s\n", module, strings.Join(ids, ", "))
		}
	}
	byOwner := func(x, y string) int {
		return cmp.Or(slices.Compare(all.owners[x], all.owners[y]), strings.Compare(x, y))
	}
	for _, text := range slices.SortedFunc(maps.Keys(all.owners), byOwner) {
		fmt.Fprintf(&b, "\n%s\n%s\n\n%s\n", strings.Repeat("=", 80), strings.Join(all.owners[text], "\n"), text)
	}
	return b.String(), errors.Join(errs...)
}

// add reads the licences in the folder of a package and above, up to the folder of its module.
func (l licenses) add(module, top, dir string) error {
	l.ids[module] = union(l.ids[module]) // an entry also without a licence
	for ; len(dir) >= len(top) && !l.done[dir]; dir = filepath.Dir(dir) {
		l.done[dir] = true
		files, err := os.ReadDir(dir)
		if err != nil {
			return err
		}
		for _, f := range files {
			if f.IsDir() || !licenseFile.MatchString(f.Name()) {
				continue
			}
			text, err := os.ReadFile(filepath.Join(dir, f.Name()))
			if err != nil {
				return err
			}
			ids, err := identify(f.Name(), text)
			if err != nil {
				return fmt.Errorf("%s: %s: %w", module, filepath.Join(dir, f.Name()), err)
			}
			l.ids[module] = union(l.ids[module], ids...)
			l.owners[string(text)] = union(l.owners[string(text)], module)
		}
	}
	return nil
}

func union(set []string, more ...string) []string {
	return slices.Compact(slices.Sorted(slices.Values(append(set, more...))))
}

// identify returns the SPDX identifiers of a text. Notices and grants of patents have none.
func identify(name string, text []byte) (ids []string, err error) {
	if !strings.Contains(strings.ToLower(name), "licen") && !strings.HasPrefix(strings.ToLower(name), "copying") {
		return nil, nil
	}
	sum := sha256.Sum256(text)
	if ids, known := reviewed[hex.EncodeToString(sum[:8])]; known {
		return ids, nil
	}
	found := licensecheck.Scan(text)
	for _, m := range found.Match {
		if !slices.Contains(allowed, m.ID) {
			return nil, fmt.Errorf("licence %s is not allowed", m.ID)
		}
		ids = append(ids, m.ID)
	}
	if found.Percent < recognized {
		return nil, fmt.Errorf("unknown licence, only %.0f %% of the text resemble %s: read it, and add %x to reviewed", found.Percent, ids, sum[:8])
	}
	return ids, nil
}
