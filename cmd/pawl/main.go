// Command pawl turns an object store's notifications into effects that happen
// once, in order, one at a time per object.
//
// "pawl --help" lists what it can do. As the bootstrap of a function of AWS Lambda it
// serves invocations instead.
package main

import (
	"context"
	"os"

	"github.com/pawlhq/pawl/internal/cli"
)

func main() {
	streams := cli.Streams{In: os.Stdin, Out: os.Stdout, Err: os.Stderr}
	if len(os.Args) == 1 && cli.InLambda() {
		os.Exit(cli.Lambda(context.Background(), streams))
	}
	os.Exit(cli.Main(context.Background(), os.Args[1:], streams))
}
