// Command pawl turns an object store's notifications into effects that happen once, in order, one at a time
// per object.
//
// If AWS Lambda starts pawl as the bootstrap of a function, it serves invocations.
package main

import (
	"context"
	"os"

	_ "golang.org/x/crypto/x509roots/fallback" // certificates for systems without any, such as an image

	"github.com/pawlhq/pawl/cmd/pawl/app"
	"github.com/pawlhq/pawl/cmd/pawl/pipelinecmd"
	"github.com/pawlhq/pawl/cmd/pawl/root"
)

func main() {
	streams := app.Streams{In: os.Stdin, Out: os.Stdout, Err: os.Stderr}
	if len(os.Args) == 1 && pipelinecmd.InLambda() {
		os.Exit(pipelinecmd.Lambda(context.Background(), streams))
	}
	os.Exit(root.Main(context.Background(), os.Args[1:], streams))
}
