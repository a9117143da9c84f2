package demo

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/pawlhq/pawl/internal/process"
	"github.com/pawlhq/pawl/proof/rig"
)

func (s *archiveScenario) run(ctx context.Context) error {
	begun := time.Now()
	ctx, cancel := context.WithTimeoutCause(ctx, 2*stepTimeout, errTimeout)
	defer cancel()
	if err := s.put(ctx, archiveRecords/3); err != nil {
		return err
	}
	if err := s.killSender(ctx); err != nil {
		return err
	}
	if err := s.put(ctx, archiveRecords); err != nil {
		return err
	}
	s.screen.done("%d records are put into the stream", archiveRecords)
	if err := s.awaitStored(ctx); err != nil {
		return err
	}
	if err := s.releaseLateUpload(ctx); err != nil {
		return err
	}
	if err := s.verify(ctx); err != nil {
		return err
	}
	if err := s.countRecords(); err != nil {
		return err
	}
	r := s.report
	r.Seconds, r.Workers.Started = time.Since(begun).Seconds(), s.fleet.size()
	r.OK = r.Records.Once == r.Records.Put && r.Records.Others == 0 && r.LatePut == http.StatusPreconditionFailed && len(r.Verify.Findings) == 0
	return nil
}

func (s *archiveScenario) put(ctx context.Context, to int) error {
	const batch = 15
	for s.report.Records.Put < to {
		n := s.report.Records.Put
		s.report.Records.Put++
		s.stream.put(fmt.Sprintf("visitor-%d", n%97), fmt.Appendf(nil, `{"click":%d,"page":"/%d"}`, n, n%13))
		if n%batch == 0 && process.Sleep(ctx, puttingSpan*batch/archiveRecords) != nil {
			return context.Cause(ctx)
		}
	}
	return nil
}

// killSender kills a worker that has sent an object before the store receives it.
func (s *archiveScenario) killSender(ctx context.Context) error {
	s.delayer.delayNext()
	stopped := make(chan struct{})
	within, cancel := context.WithCancel(ctx)
	defer cancel()
	go func() {
		defer close(stopped)
		_ = s.put(within, 2*archiveRecords/3) // the next call of put puts the remaining records
	}()
	var key string
	select {
	case key = <-s.delayer.sender:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	for _, w := range s.fleet.all() {
		if accessKeyOf(w.number) != key {
			continue
		}
		w.Kill()
		s.killed, s.report.Workers.Killed = w, 1
		s.screen.done("%s is killed while one of its uploads is in transit", w)
	}
	cancel()
	<-stopped
	next, err := s.startWorker()
	if err == nil {
		s.screen.done("%s is started in its place", next)
	}
	return err
}

func (s *archiveScenario) awaitStored(ctx context.Context) error {
	s.screen.begin("storing", archiveRecords)
	defer s.screen.end()
	err := rig.Until(ctx, 100*time.Millisecond, func() (bool, error) {
		found, err := s.stored()
		s.screen.progress(len(found))
		if err == nil {
			err = s.checkWorkersRunning()
		}
		return len(found) >= archiveRecords, err
	})
	if errors.Is(err, errTimeout) {
		s.screen.failed("not all records are stored")
		return nil // countRecords reports the missing records
	}
	return err
}

func (s *archiveScenario) checkWorkersRunning() error {
	for _, w := range s.fleet.all() {
		if w != s.killed && w.Ended() {
			return fmt.Errorf("%s exited unexpectedly; the end of its log, %s:\n%s", w, w.Log, w.LogTail())
		}
	}
	return nil
}

func (s *archiveScenario) releaseLateUpload(ctx context.Context) error {
	s.delayer.release()
	select {
	case s.report.LatePut = <-s.delayer.answered:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	if s.report.LatePut == http.StatusPreconditionFailed {
		s.screen.done("the upload of the killed worker arrives now, and the store rejects it: another worker has stored the object")
	} else {
		s.screen.failed("the upload of the killed worker arrives now, and the store answers %d", s.report.LatePut)
	}
	return nil
}

func (s *archiveScenario) verify(ctx context.Context) error {
	v := &s.report.Verify
	if err := s.fleet.runJSON(ctx, v, "archive", "verify", "--deep"); err != nil {
		return err
	}
	if len(v.Findings) > 0 {
		s.screen.failed("verify has %s", plural(len(v.Findings), "finding"))
		return nil
	}
	s.screen.done("verify proves that %s cover every range of %s exactly once", plural(v.Objects, "object"), plural(v.Shards, "shard"))
	return nil
}

func (s *archiveScenario) countRecords() error {
	found, err := s.stored()
	if err != nil {
		return err
	}
	c := &s.report.Records
	for i := range c.Put {
		switch found[i] {
		case 1:
			c.Once++
		case 0:
			c.Missing++
		default:
			c.Doubled++
		}
	}
	if c.Others = len(found) - c.Once - c.Doubled; c.Once == c.Put && c.Others == 0 {
		s.screen.done("an independent reader finds each of the %d records once", c.Put)
	} else {
		s.screen.failed("%d of %d records are stored once, %d never, %d more than once", c.Once, c.Put, c.Missing, c.Doubled)
	}
	return nil
}

func (s *archiveScenario) stored() (map[int]int, error) {
	objects, err := s.store.contents(archiveBucket)
	if err != nil {
		return nil, err
	}
	found := map[int]int{}
	for key, body := range objects {
		if !strings.HasSuffix(key, "."+archiveFormat) {
			continue
		}
		plain, err := gzip.NewReader(bytes.NewReader(body))
		if err != nil {
			return nil, fmt.Errorf("%s: %w", key, err)
		}
		for lines := json.NewDecoder(plain); lines.More(); {
			var line struct{ Data string }
			var data struct{ Click int }
			if err := errors.Join(lines.Decode(&line), json.Unmarshal([]byte(line.Data), &data)); err != nil {
				return nil, fmt.Errorf("%s: %w", key, err)
			}
			found[data.Click]++
		}
	}
	return found, nil
}
