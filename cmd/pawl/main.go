// Command pawl turns an object store's notifications into effects that happen
// once, in order, one at a time per object.
//
// "pawl --help" lists what it can do.
package main

import (
	"context"
	"os"

	"github.com/pawlhq/pawl/internal/cli"
)

func main() {
	os.Exit(cli.Main(context.Background(), os.Args[1:], cli.Streams{In: os.Stdin, Out: os.Stdout, Err: os.Stderr}))
}
