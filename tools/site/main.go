// Command site builds the documentation site into dist/site, with Hugo:
//
//	go run ./tools/site [hugo flags]
package main

import (
	"context"
	"log"
	"os"
	"os/exec"
	"path/filepath"

	"github.com/pawlhq/pawl/internal/toolcache"
)

func main() {
	log.SetFlags(0)
	if err := run(context.Background(), os.Args[1:]); err != nil {
		log.Fatal("tools/site: ", err)
	}
}

func run(ctx context.Context, flags []string) error {
	root, err := toolcache.Root()
	if err != nil {
		return err
	}
	hugo, err := toolcache.Hugo.Build(ctx, root, os.Stderr)
	if err != nil {
		return err
	}
	args := []string{"-m", "hugo", "--source", filepath.Join(root, "site"), "--destination", filepath.Join(root, "dist", "site"), "--cleanDestinationDir", "--noBuildLock", "--panicOnWarning"}
	cmd := exec.CommandContext(ctx, filepath.Join(hugo, "bin", "python"), append(args, flags...)...)
	cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
	return cmd.Run()
}
