package pipelinecmd

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"strings"

	"github.com/aws/aws-lambda-go/lambda"
	"github.com/aws/aws-sdk-go-v2/aws"
	awsconfig "github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/service/ssm"

	"github.com/pawlhq/pawl/awslambda"
	"github.com/pawlhq/pawl/bucket/s3bucket"
	"github.com/pawlhq/pawl/cmd/pawl/app"
	"github.com/pawlhq/pawl/cmd/pawl/config"
	"github.com/pawlhq/pawl/cmd/pawl/parts"
	"github.com/pawlhq/pawl/event"
)

// InLambda reports whether the runtime of AWS Lambda started this process.
func InLambda() bool { return os.Getenv("AWS_LAMBDA_RUNTIME_API") != "" }

// Lambda serves invocations. PAWL_CONFIG names the configuration: a file of the deployment package (default
// pawl.yaml), s3://BUCKET/KEY, or ssm:PARAMETER. If Lambda cannot start, it returns an exit code.
func Lambda(ctx context.Context, s app.Streams) int {
	a := &app.App{Streams: s, Parts: parts.Table, Parsed: true, JSON: true, LogLevel: os.Getenv("PAWL_LOG_LEVEL")}
	a.ConfigFile = cmp.Or(os.Getenv("PAWL_CONFIG"), "pawl.yaml")
	h, err := lambdaHandler(ctx, a)
	if err != nil {
		f := app.Classify(err, true)
		a.PrintFailure(f, nil)
		return f.Code
	}
	lambda.StartWithOptions(h, lambda.WithContext(ctx)) // does not return: Lambda kills the process
	return app.ExitDone
}

// The ledger stays open until the process ends.
func lambdaHandler(ctx context.Context, a *app.App) (*awslambda.Handler, error) {
	log, err := a.Logger(a.Err, slog.LevelInfo)
	if err != nil {
		return nil, err
	}
	m, err := a.Assemble(ctx, loadForLambda(ctx, a), log, false)
	if err != nil {
		return nil, err
	}
	if err := checkAndAnnounce(ctx, m); err != nil {
		return nil, errors.Join(err, m.Close())
	}
	tracer, err := startTracing(ctx, m)
	if err != nil {
		return nil, errors.Join(err, m.Close())
	}
	return &awslambda.Handler{
		Flush: tracer.Flush, Config: m.Parts, Dialect: m.Config.Lambda.Dialect.Event(), Scheduled: m.Config.Lambda.Sweep == "scheduled",
		Metrics: a.Out, // the log goes to a.Err
	}, nil
}

// The loader rejects configurations that cannot work in Lambda.
func loadForLambda(ctx context.Context, a *app.App) app.Loader {
	return func(name string, lookup func(string) (string, bool)) (*config.Config, error) {
		raw, err := readConfig(ctx, name)
		if err != nil {
			return nil, &app.Failure{Code: app.ExitUsage, Err: fmt.Errorf("read the configuration %s, which PAWL_CONFIG names: %w", name, err)}
		}
		c, err := a.Parts.Parse(name, raw, lookup)
		if err != nil {
			return nil, err
		}
		return c, checkLambda(c)
	}
}

func checkLambda(c *config.Config) error {
	_, file := c.Ledger.Config.(parts.SQLite)
	_, volatile := c.Ledger.Config.(parts.Memory)
	switch {
	case file || volatile:
		return c.At("ledger", errors.New("not shared between the execution environments of AWS Lambda: use dynamodb://TABLE?region=REGION, or PostgreSQL"))
	case len(c.Sources) > 0:
		return c.At("sources", errors.New("not supported in AWS Lambda, which delivers the notifications: remove the sources, and create an event source mapping for the queue"))
	case len(c.Pipelines) == 0:
		return c.At("pipelines", errors.New("none configured: an AWS Lambda function runs pipelines only, not archives or files"))
	}
	return nil
}

func readConfig(ctx context.Context, name string) ([]byte, error) {
	if parameter, ok := strings.CutPrefix(name, "ssm:"); ok {
		return readParameter(ctx, parameter)
	}
	rest, ok := strings.CutPrefix(name, "s3://")
	if !ok {
		return os.ReadFile(name)
	}
	bucket, key, _ := strings.Cut(rest, "/")
	s, err := s3bucket.New(ctx, s3bucket.Config{PathStyle: true}) // which every store accepts
	if err != nil {
		return nil, err
	}
	_, body, err := s.Get(ctx, event.Object{Bucket: bucket, Key: key})
	if err != nil {
		return nil, err
	}
	raw, err := io.ReadAll(io.LimitReader(body, config.MaxFile+1)) // the parser rejects larger files
	return raw, errors.Join(err, body.Close())
}

func readParameter(ctx context.Context, name string) ([]byte, error) {
	cfg, err := awsconfig.LoadDefaultConfig(ctx)
	if err != nil {
		return nil, err
	}
	out, err := ssm.NewFromConfig(cfg).GetParameter(ctx, &ssm.GetParameterInput{Name: &name, WithDecryption: aws.Bool(true)})
	if err != nil {
		return nil, err
	}
	return []byte(aws.ToString(out.Parameter.Value)), nil
}
