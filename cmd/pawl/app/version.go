package app

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"

	"github.com/spf13/cobra"
)

// The linker sets both in released binaries (release/release.sh).
var version, commit string

// Build is the output of "pawl version".
type Build struct {
	Version  string `json:"version"`
	Go       string `json:"go"`
	Platform string `json:"platform"`
	Revision string `json:"revision,omitempty"` // commit, if known
	Modified bool   `json:"modified,omitempty"` // with uncommitted changes

	Formats map[string]string `json:"formats"` // see the variable
}

// NewVersionCommand returns the command version.
func NewVersionCommand(a *App) *cobra.Command {
	return &cobra.Command{
		Use:     "version",
		Short:   "Print the version",
		Long:    "Version prints the version of Pawl, the Go version, the platform, the source revision, and the version of each stored format.",
		Example: "  pawl version\n  pawl version --json",
		Args:    NoArgs,
		RunE:    func(cmd *cobra.Command, _ []string) error { return runVersion(cmd.Context(), a) },
	}
}

func runVersion(_ context.Context, a *App) error {
	b := ThisBuild()
	if a.JSON {
		return a.PrintJSON(b)
	}
	text := fmt.Sprintf("pawl %s, %s, %s", b.Version, b.Go, b.Platform)
	if b.Revision != "" {
		text += ", revision " + b.Revision
	}
	if b.Modified {
		text += " (modified)"
	}
	text += "\nformats:"
	for _, name := range slices.Sorted(maps.Keys(b.Formats)) {
		major, _, _ := strings.Cut(b.Formats[name], ".")
		text += fmt.Sprintf("\n  %-10s writes %s, reads %s.x", name, b.Formats[name], major)
	}
	_, err := fmt.Fprintln(a.Out, text)
	return err
}

// ThisBuild returns the build of this program.
func ThisBuild() Build {
	b := Build{Version: version, Go: runtime.Version(), Platform: runtime.GOOS + "/" + runtime.GOARCH, Revision: commit, Formats: Formats}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		b.Version = cmp.Or(b.Version, "(unknown)")
		return b
	}
	b.Version = cmp.Or(b.Version, info.Main.Version, "(devel)")
	for _, s := range info.Settings {
		switch s.Key {
		case "vcs.revision":
			b.Revision = s.Value
		case "vcs.modified":
			b.Modified = s.Value == "true"
		}
	}
	return b
}
