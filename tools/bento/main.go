// Command bento is Bento with only the components that BenchmarkSQS needs.
package main

import (
	"context"

	"github.com/warpstreamlabs/bento/public/service"

	_ "github.com/warpstreamlabs/bento/public/components/aws"
	_ "github.com/warpstreamlabs/bento/public/components/pure"
)

func main() { service.RunCLI(context.Background()) }
