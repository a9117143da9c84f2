// Command bento is Bento with what BenchmarkSQS needs of it.
package main

import (
	"context"

	"github.com/warpstreamlabs/bento/public/service"

	_ "github.com/warpstreamlabs/bento/public/components/aws"
	_ "github.com/warpstreamlabs/bento/public/components/pure"
)

func main() { service.RunCLI(context.Background()) }
