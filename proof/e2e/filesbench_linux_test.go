package e2e

import (
	"bytes"
	"context"
	crand "crypto/rand"
	"encoding/hex"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/pawlhq/pawl/files"
	"github.com/pawlhq/pawl/files/filesapi"
	"github.com/pawlhq/pawl/files/s3objects"
	"github.com/pawlhq/pawl/proof/servertest"
)

var (
	fileRows     = flag.Int("filerows", 10_000, "files of the large entity, and of all others together, in BenchmarkFiles")
	fileRequests = flag.Int("filerequests", 2000, "requests of each kind in BenchmarkFiles")
)

const (
	albumFiles = 1000
	maxLatency = 5 * time.Millisecond // for one request in a hundred
)

// BenchmarkFiles measures list pages, new uploads, the time from a PUT until its file is visible, and the
// memory of uploads. The bare metrics are of the database alone: the SELECT of such a page, and an INSERT
// as durable as an upload.
func BenchmarkFiles(b *testing.B) {
	path := filepath.Join(b.TempDir(), "files.db")
	b.Run("sqlite", func(b *testing.B) { benchmarkIndex(b, newFilledSQLite(b, path)) })
	b.Run("postgres", func(b *testing.B) { benchmarkIndex(b, newFilledPostgres(b)) })
	b.Run("visible", func(b *testing.B) { benchmarkVisible(b, path) })
	b.Run("stream", benchmarkStream)
}

func benchmarkIndex(b *testing.B, db filledIndex) {
	api := newFilesBench(b, db.index)
	api.collectPages(b)
	var l struct{ rest, graphql, bare, mutation, post, insert latencies }
	b.ResetTimer()
	for b.Loop() {
		for range *fileRequests {
			l.bare.add(b, func() error { return db.list(b.Context(), api.rng) })
			l.rest.add(b, api.list)
			l.graphql.add(b, api.listGraphQL)
		}
		for range *fileRequests {
			l.insert.add(b, func() error { return db.insert(b.Context()) })
			l.mutation.add(b, api.mutation)
			l.post.add(b, api.post)
		}
	}
	l.bare.report(b, "bare-list", 0)
	l.rest.report(b, "list", maxLatency)
	l.graphql.report(b, "graphql-list", maxLatency)
	l.insert.report(b, "bare-insert", 0)
	l.mutation.report(b, "upload", maxLatency)
	l.post.report(b, "post-upload", maxLatency)
	reportLoad(b)
}

type latencies struct {
	took []time.Duration
	cpu  time.Duration
}

func (l *latencies) add(b *testing.B, do func() error) {
	b.Helper()
	cpu, began := cpuTime(), time.Now()
	err := do()
	l.took = append(l.took, time.Since(began))
	l.cpu += cpuTime() - cpu
	if err != nil {
		b.Fatal(err)
	}
}

// report also logs them, because a failed benchmark prints no metrics.
func (l *latencies) report(b *testing.B, name string, most time.Duration) {
	b.Helper()
	slices.Sort(l.took)
	at := func(percent int) time.Duration { return l.took[(len(l.took)-1)*percent/100] }
	cpu := l.cpu / time.Duration(len(l.took))
	b.Logf("%s: median %s, 99 of 100 within %s, %s of CPU each", name, at(50), at(99), cpu)
	ms := func(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }
	b.ReportMetric(ms(at(50)), name+"-p50-ms")
	b.ReportMetric(ms(at(99)), name+"-p99-ms")
	if cpu > 0 {
		b.ReportMetric(ms(cpu), name+"-cpu-ms")
	}
	if most > 0 && at(99) > most {
		b.Errorf("%s: the 99th percentile is %s, want at most %s", name, at(99), most)
	}
}

func reportLoad(b *testing.B) {
	b.Helper()
	text, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		b.Fatal(err)
	}
	var load float64
	if _, err := fmt.Sscan(string(text), &load); err != nil {
		b.Fatal(err)
	}
	b.Logf("load: %.1f", load)
	b.ReportMetric(load, "load")
	b.ReportMetric(0, "ns/op")
}

type filesBench struct {
	*filesClient
	pageStarts []pageStart
}

type pageStart struct{ entity, after string }

func newFilesBench(b *testing.B, index *files.Index) *filesBench {
	b.Helper()
	keys, err := filesapi.Secret([]byte(filesSecret))
	if err != nil {
		b.Fatal(err)
	}
	tokens, err := filesapi.NewTokens(keys, filesapi.Claims{})
	if err != nil {
		b.Fatal(err)
	}
	handler, err := filesapi.New(filesapi.Config{
		Files: newFilesService(b, index), Tokens: tokens, Cursors: []byte(filesSecret), Rate: 1e9, Burst: 1e9,
		Logger: slog.New(slog.NewTextHandler(io.Discard, nil)),
	})
	if err != nil {
		b.Fatal(err)
	}
	server := httptest.NewServer(handler)
	b.Cleanup(server.Close)
	address := strings.TrimPrefix(server.URL, "http://")
	return &filesBench{filesClient: newFilesClient(b, "bench", rand.New(rand.NewPCG(1, 2)), func() []string { return []string{address} })}
}

type promisedObjects struct{ *s3objects.Bucket }

func (promisedObjects) Stat(context.Context, string) (files.ObjectInfo, error) {
	return files.ObjectInfo{Found: true, Size: rowPromise.Size, SHA256: rowPromise.SHA256, Date: time.Now()}, nil
}

func newFilesService(b *testing.B, index *files.Index) *files.Service {
	b.Helper()
	store := servertest.MinIO(b, servertest.Options{}) // the service checks it before it signs a URL
	return &files.Service{
		Index: index, Objects: promisedObjects{s3objects.New(store.Client(), store.NewBucket(b), "").AcceptForgeable()}, Times: files.DefaultTimes(), Prefix: filePrefix,
	}
}

func (f *filesBench) query(query string, variables map[string]any) (text []byte, err error) {
	body, err := json.Marshal(map[string]any{"query": query, "variables": variables})
	if err != nil {
		return nil, err
	}
	text, status, err := f.Send(context.Background(), http.MethodPost, "http://"+f.apis()[0]+"/graphql", jsonHeader, bytes.NewReader(body), len(body))
	if err == nil && (status != http.StatusOK || bytes.Contains(text, []byte(`"errors"`))) {
		err = fmt.Errorf("%s: %d %.300s", query, status, text)
	}
	return text, err
}

var jsonHeader = map[string]string{"Content-Type": "application/json"}

func (f *filesBench) collectPages(b *testing.B) {
	b.Helper()
	if n := f.pages(b, largeEntity, 1000); n != *fileRows {
		b.Fatalf("%d files are listed: want %d", n, *fileRows)
	}
	for range min(len(f.pageStarts), 50) {
		if n := f.pages(b, album(f.rng.IntN(albums())), 100); n != albumFiles {
			b.Fatalf("%d files are listed: want %d", n, albumFiles)
		}
	}
}

func (f *filesBench) pages(b *testing.B, entity string, size int) (n int) {
	b.Helper()
	for after := ""; ; {
		var page struct {
			Data struct {
				Entity struct {
					Files struct {
						Edges []struct {
							Node struct{ FileID string }
						}
						PageInfo struct {
							HasNextPage bool
							EndCursor   string
						}
					}
				}
			}
		}
		text, err := f.query(`query($e: ID!, $n: Int!, $a: String) { entity(id: $e) { files(first: $n, after: $a) { edges { node { fileId } } pageInfo { hasNextPage endCursor } } } }`,
			map[string]any{"e": entity, "n": size, "a": after})
		if err == nil {
			err = json.Unmarshal(text, &page)
		}
		if err != nil {
			b.Fatal(err)
		}
		found := page.Data.Entity.Files
		n += len(found.Edges)
		if !found.PageInfo.HasNextPage {
			return n
		}
		after = found.PageInfo.EndCursor
		f.pageStarts = append(f.pageStarts, pageStart{entity, after})
	}
}

func (f *filesBench) list() error {
	at := f.pageStarts[f.rng.IntN(len(f.pageStarts))]
	text, status, err := f.Send(context.Background(), http.MethodGet, "http://"+f.apis()[0]+"/v1/entities/"+at.entity+"/files?limit=100&after="+at.after, nil, http.NoBody, 0)
	return f.checkPage(text, status, err)
}

const listQuery = `query($e: ID!, $a: String) { entity(id: $e) { files(first: 100, after: $a) {
	edges { cursor node { fileId entity state size contentType sha256 createdAt downloadURL } } pageInfo { hasNextPage endCursor } } } }`

func (f *filesBench) listGraphQL() error {
	at := f.pageStarts[f.rng.IntN(len(f.pageStarts))]
	text, err := f.query(listQuery, map[string]any{"e": at.entity, "a": at.after})
	return f.checkPage(text, http.StatusOK, err)
}

func (f *filesBench) checkPage(text []byte, status int, err error) error {
	if n := bytes.Count(text, []byte(`X-Amz-Signature`)); err == nil && (status != http.StatusOK || n != 100) {
		err = fmt.Errorf("%d, %d files: %.300s", status, n, text)
	}
	return err
}

const uploadMutation = `mutation($u: UploadInput!) { upload(input: $u) { fileId uploadMethod uploadURL uploadUntil uploadHeaders { key value } } }`

func (f *filesBench) entity() string {
	if f.rng.IntN(2) == 0 {
		return largeEntity
	}
	return album(f.rng.IntN(albums()))
}

func (f *filesBench) mutation() error {
	text, err := f.query(uploadMutation, map[string]any{"u": map[string]any{
		"entity": f.entity(), "size": rowPromise.Size, "contentType": rowPromise.ContentType, "sha256": hex.EncodeToString(rowPromise.SHA256[:]), "idempotencyKey": crand.Text(),
	}})
	if err == nil && !bytes.Contains(text, []byte("X-Amz-Signature")) {
		err = fmt.Errorf("no signed URL: %s", text)
	}
	return err
}

func (f *filesBench) post() error {
	_, err := f.sign(context.Background(), f.entity(), crand.Text(), []byte("x"))
	return err
}
