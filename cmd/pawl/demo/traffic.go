package demo

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"runtime"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/pawlhq/pawl/internal/process"
	"github.com/pawlhq/pawl/proof/rig"
)

func (s *pipelineScenario) drawPictures(ctx context.Context) ([][]byte, error) {
	files := make([][]byte, len(s.steps))
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(runtime.GOMAXPROCS(0))
	drawn := 0
	for i, step := range s.steps {
		if step.picture == nil {
			continue
		}
		drawn++
		group.Go(func() (err error) {
			if ctx.Err() != nil {
				return context.Cause(ctx)
			}
			files[i], err = step.picture.file()
			return err
		})
	}
	if err := group.Wait(); err != nil {
		return nil, err
	}
	s.screen.done("%d photographs are drawn", drawn)
	return files, nil
}

func (s *pipelineScenario) upload(ctx context.Context, files [][]byte) error {
	s.screen.begin("uploading", len(s.steps))
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { return s.killWorker(ctx) })
	group.Go(func() error { return s.apply(ctx, files) })
	err := group.Wait()
	s.screen.end()
	if err != nil {
		return err
	}
	s.report.Uploads = s.inputs.count()
	s.screen.done("%d changes are made: %s", s.report.Uploads.sum(), s.report.Uploads)
	return nil
}

func (s *pipelineScenario) apply(ctx context.Context, files [][]byte) error {
	client := &http.Client{Transport: &http.Transport{}, Timeout: stepTimeout}
	defer client.CloseIdleConnections()
	begun := time.Now()
	for i := range s.steps {
		if process.Sleep(ctx, time.Until(begun.Add(s.steps[i].at))) != nil {
			return context.Cause(ctx)
		}
		if s.steps[i].awaitsOutput {
			if err := s.awaitOutput(ctx, s.steps[i].key); err != nil {
				return err
			}
		}
		if err := s.sendChange(ctx, client, &s.steps[i], files[i]); err != nil {
			return err
		}
		s.screen.progress(i + 1)
	}
	return nil
}

func (s *pipelineScenario) awaitOutput(ctx context.Context, key string) error {
	ctx, cancel := context.WithTimeoutCause(ctx, stepTimeout, errTimeout)
	defer cancel()
	return rig.Until(ctx, 20*time.Millisecond, func() (bool, error) {
		_, err := s.store.HeadObject(outputBucket, outputPrefix+strings.TrimPrefix(key, inputPrefix))
		return err == nil, nil
	})
}

func (s *pipelineScenario) sendChange(ctx context.Context, client *http.Client, step *step, file []byte) error {
	target := s.endpoint.url + (&url.URL{Path: "/" + inputBucket + "/" + step.key}).EscapedPath()
	method, want := http.MethodPut, http.StatusOK
	if step.picture == nil {
		method, want = http.MethodDelete, http.StatusNoContent
	}
	req, err := http.NewRequestWithContext(ctx, method, target, bytes.NewReader(file))
	if err != nil {
		return err
	}
	if step.picture != nil {
		req.Header.Set("Content-Type", step.picture.contentType())
	}
	res, err := client.Do(req)
	if err != nil {
		return err
	}
	defer func() { _ = res.Body.Close() }() // the client only read from it
	if answer, err := io.ReadAll(res.Body); err != nil || res.StatusCode != want {
		return fmt.Errorf("%s %s: the store answered %s: %s", method, object(inputBucket, step.key), res.Status, answer)
	}
	return nil
}
