// Command mutex runs a job that must not run twice at the same time on any machine:
//
//	go run ./examples/mutex BUCKET
package main

import (
	"context"
	"fmt"
	"log"
	"os"
	"os/signal"
	"time"

	"github.com/pawlhq/pawl/bucket/s3bucket"
	"github.com/pawlhq/pawl/lock"
)

func main() {
	if len(os.Args) != 2 {
		log.Fatal("usage: mutex BUCKET")
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	err := run(ctx, os.Args[1])
	stop()
	if err != nil {
		log.Fatal(err)
	}
}

func run(ctx context.Context, name string) error {
	objects, err := s3bucket.New(ctx, s3bucket.Config{PathStyle: true})
	if err != nil {
		return err
	}
	b, err := lock.Open(ctx, objects, name, "locks/") // verifies that the store honours conditions
	if err != nil {
		return err
	}
	m, err := b.Mutex("locks/report", lock.Config{Reason: "the nightly report"})
	if err != nil {
		return err
	}
	held, err := m.Acquire(ctx)
	if err != nil {
		return err
	}
	fmt.Println("token", held.Token())
	if err := report(held.Context()); err != nil { // ends if the lock is lost
		return err
	}
	return held.Release(context.WithoutCancel(ctx))
}

func report(ctx context.Context) error {
	select {
	case <-time.After(100 * time.Millisecond): // the work
		fmt.Println("done")
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
