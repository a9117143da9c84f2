//go:build unix

package e2e

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/pawlhq/pawl/proof/rig"
)

type clientFile struct {
	id, entity  string
	body        []byte
	lastStep    string
	wantVisible bool
	parts       *rig.FileAnswer

	// Expectations for lists, guarded by filesTest.mu; revision counts their changes.
	mustBeListed, mustNotBeListed bool
	revision                      int
}

func (s *filesTest) runFile(ctx context.Context, c *filesClient, n int) error {
	f := &clientFile{entity: fmt.Sprintf("album-%d", n%3), body: []byte(strings.Repeat(fmt.Sprintf("file %d. ", n), 1+c.rng.IntN(4000)))}
	key := fmt.Sprintf("key %d", n)
	fate := c.rng.IntN(10)
	if fate < 2 {
		return s.uploadThroughService(ctx, c, f, key)
	}
	begin := c.sign
	inParts := c.rng.IntN(3) == 0
	if inParts {
		begin = c.signParts
		if c.rng.IntN(4) == 0 {
			f.body = bytes.Repeat(f.body, 2*filePart/len(f.body)+1) // three parts
		}
	}
	signed, err := begin(ctx, f.entity, key, f.body)
	if err != nil {
		return err
	}
	f.id = signed.File.ID
	if inParts {
		f.parts = signed
	}
	s.add(f)
	switch fate {
	case 2:
		f.lastStep = "never uploaded"
		return nil
	case 3:
		return s.deleteEarly(ctx, c, f, signed)
	case 4:
		if err := putWrongBytes(ctx, c, f, signed); err != nil {
			return err
		}
	}
	if err := c.put(ctx, signed, f.body); err != nil {
		return err
	}
	f.lastStep, f.wantVisible = "uploaded", true
	if inParts {
		f.lastStep = "uploaded in parts"
	}
	if inParts || c.rng.IntN(2) == 0 {
		if err := s.complete(ctx, c, f); err != nil {
			return err
		}
	}
	return s.deleteAndUndelete(ctx, c, f)
}

func (s *filesTest) add(f *clientFile) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.files = append(s.files, f)
}

func (s *filesTest) expectListing(f *clientFile, visible, hidden bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	f.mustBeListed, f.mustNotBeListed = visible, hidden
	f.revision++
}

func (s *filesTest) uploadThroughService(ctx context.Context, c *filesClient, f *clientFile, key string) error {
	a, err := c.Want(ctx, http.StatusCreated, http.MethodPost, "/v1/files?entity="+f.entity,
		map[string]string{"Content-Type": "text/plain", "Idempotency-Key": key}, f.body)
	if err != nil {
		return err
	}
	f.id, f.lastStep, f.wantVisible = a.ID, "posted", true
	s.add(f)
	s.expectListing(f, true, false)
	return s.deleteAndUndelete(ctx, c, f)
}

var errWrongBytesAccepted = errors.New("the store accepted other bytes than promised")

// The store must reject them.
func putWrongBytes(ctx context.Context, c *filesClient, f *clientFile, signed *rig.FileAnswer) error {
	if status, err := c.putOnce(ctx, cmp.Or(append(signed.Parts, signed.Upload)...), bytes.ToUpper(f.body)[:min(len(f.body), filePart)]); err == nil && status == http.StatusOK {
		return errWrongBytesAccepted
	}
	return nil
}

func (s *filesTest) deleteEarly(ctx context.Context, c *filesClient, f *clientFile, signed *rig.FileAnswer) error {
	f.lastStep = "deleted early"
	put := make(chan error, 1)
	go func() { put <- c.put(ctx, signed, f.body) }()
	err := s.delete(ctx, c, f)
	return errors.Join(err, <-put)
}

// If an aborted part was sent again, and then its first copy also lands, MinIO may not list the part for a
// while, or lose it. Then the file is pending until the parts are sent again.
func (s *filesTest) complete(ctx context.Context, c *filesClient, f *clientFile) error {
	a, err := c.Want(ctx, http.StatusOK, http.MethodPost, "/v1/files/"+f.id+"/complete", nil, nil)
	for err == nil && f.parts != nil && a.State == "pending" {
		if err := c.put(ctx, f.parts, f.body); err != nil {
			return err
		}
		s.resent.Add(1)
		a, err = c.Want(ctx, http.StatusOK, http.MethodPost, "/v1/files/"+f.id+"/complete", nil, nil)
	}
	if err != nil {
		return err
	}
	if a.State != "indexed" {
		return fmt.Errorf("%s was uploaded and completed, but is %s", f.id, a.State)
	}
	s.expectListing(f, true, false)
	return nil
}

func (s *filesTest) deleteAndUndelete(ctx context.Context, c *filesClient, f *clientFile) error {
	for chance := 40; c.rng.IntN(100) < chance; chance += 20 {
		if err := s.delete(ctx, c, f); err != nil {
			return err
		}
		f.lastStep, f.wantVisible = "deleted", false
		if c.rng.IntN(100) < 50 {
			return nil
		}
		s.expectListing(f, false, false)
		if _, err := c.Want(ctx, http.StatusOK, http.MethodPost, "/v1/files/"+f.id+"/undelete", nil, nil); err != nil {
			return err
		}
		f.lastStep, f.wantVisible = "undeleted", true
		if err := s.complete(ctx, c, f); err != nil {
			return err
		}
	}
	return nil
}

func (s *filesTest) delete(ctx context.Context, c *filesClient, f *clientFile) error {
	s.expectListing(f, false, false)
	_, err := c.Want(ctx, http.StatusOK, http.MethodDelete, "/v1/files/"+f.id, nil, nil)
	if err == nil {
		s.expectListing(f, false, true)
	}
	return err
}

type listChecker struct {
	stop  func()
	lists int
}

func (s *filesTest) newListChecker(t *testing.T) *listChecker {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	c := newFilesClient(t, "watcher", rand.New(rand.NewPCG(s.seed, 2)), s.fleet.apis)
	w := &listChecker{}
	var wg sync.WaitGroup
	wg.Go(func() {
		tick := time.NewTicker(50 * time.Millisecond)
		defer tick.Stop()
		for n := 0; ctx.Err() == nil; n++ {
			s.checkList(ctx, t, c, fmt.Sprintf("album-%d", n%3))
			w.lists++
			select {
			case <-ctx.Done():
			case <-tick.C:
			}
		}
	})
	w.stop = func() {
		cancel()
		wg.Wait()
	}
	t.Cleanup(w.stop)
	return w
}

// checkList checks only expectations that did not change while it listed.
func (s *filesTest) checkList(ctx context.Context, t *testing.T, c *filesClient, entity string) {
	before := map[*clientFile]int{}
	s.mu.Lock()
	for _, f := range s.files {
		before[f] = f.revision
	}
	s.mu.Unlock()
	listed, err := c.List(ctx, entity)
	if ctx.Err() != nil {
		return
	}
	if err != nil {
		t.Error(err)
		return
	}
	times := map[string]int{}
	for _, f := range listed {
		times[f.ID]++
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for f, known := range before {
		n := times[f.id]
		switch {
		case f.revision != known || f.entity != entity:
		case f.mustNotBeListed && n > 0:
			t.Errorf("%s is listed after it was deleted (%s)", f.id, f.lastStep)
		case f.mustBeListed && n != 1:
			t.Errorf("%s is listed %d times, want once (%s)", f.id, n, f.lastStep)
		}
	}
}

func (c *filesClient) download(ctx context.Context, url string) ([]byte, int, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return nil, 0, err
	}
	return c.Do(r)
}
