//go:build unix

package e2e

import (
	"bytes"
	"encoding/json"
	"io"
	"math/big"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/kinesis"
	"github.com/aws/aws-sdk-go-v2/service/kinesis/types"

	"github.com/pawlhq/pawl/proof/servertest"
)

// shardHidingProxy hides shards, as Kinesis does when all their records have expired. Local servers keep
// records for at least a day.
type shardHidingProxy struct {
	url    string
	hidden atomic.Pointer[map[string]bool]
}

func newShardHidingProxy(t *testing.T, endpoint string) *shardHidingProxy {
	target, err := url.Parse(endpoint)
	if err != nil {
		t.Fatal(err)
	}
	f := &shardHidingProxy{}
	f.hidden.Store(&map[string]bool{})
	proxy := httputil.NewSingleHostReverseProxy(target)
	proxy.ModifyResponse = f.hide
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return
		}
		var asked struct{ ShardId string }
		_ = json.Unmarshal(body, &asked) // other requests name no shard
		if (*f.hidden.Load())[asked.ShardId] {
			w.Header().Set("Content-Type", "application/x-amz-json-1.1")
			w.WriteHeader(http.StatusBadRequest)
			_, _ = w.Write([]byte(`{"__type":"ResourceNotFoundException","message":"the shard does not exist"}`))
			return
		}
		r.Body = io.NopCloser(bytes.NewReader(body))
		proxy.ServeHTTP(w, r)
	}))
	t.Cleanup(server.Close)
	f.url = server.URL
	return f
}

func (f *shardHidingProxy) hide(r *http.Response) error {
	if !strings.HasSuffix(r.Request.Header.Get("X-Amz-Target"), ".ListShards") || r.StatusCode != http.StatusOK {
		return nil
	}
	var all map[string]any
	if err := json.NewDecoder(r.Body).Decode(&all); err != nil {
		return err
	}
	var left []any
	for _, s := range all["Shards"].([]any) {
		if !(*f.hidden.Load())[s.(map[string]any)["ShardId"].(string)] {
			left = append(left, s)
		}
	}
	all["Shards"] = left
	b, err := json.Marshal(all)
	if err != nil {
		return err
	}
	r.Body, r.ContentLength = io.NopCloser(bytes.NewReader(b)), int64(len(b))
	r.Header.Del("Content-Length")
	r.Header.Del("X-Amz-Crc32")
	return nil
}

func (a *archiveTest) split(s types.Shard) []types.Shard {
	a.Helper()
	low, high := number(*s.HashKeyRange.StartingHashKey), number(*s.HashKeyRange.EndingHashKey)
	middle := new(big.Int).Rsh(new(big.Int).Add(low, high), 1)
	c := a.streams.Client()
	_, err := c.SplitShard(a.Context(), &kinesis.SplitShardInput{StreamName: &a.stream, ShardToSplit: s.ShardId, NewStartingHashKey: aws.String(middle.String())})
	if err != nil {
		a.Fatal(err)
	}
	a.streams.WaitActive(a.T, a.stream)
	out, err := c.ListShards(a.Context(), &kinesis.ListShardsInput{StreamName: &a.stream})
	if err != nil {
		a.Fatal(err)
	}
	return out.Shards[len(out.Shards)-2:]
}

// A shard is created and closed while no worker runs, and is no longer listed later. It becomes a gap under
// its own ID, and its child shards are stored.
func TestArchiveUnseenShard(t *testing.T) {
	t.Parallel()
	a := newArchiveTest(t, servertest.Kinesalite(t), rand.New(rand.NewPCG(*firstSeed, 24)))
	stream := newShardHidingProxy(t, a.streams.Endpoint)
	a.fleet.config = a.writeVariant("forgetting", a.streams.Endpoint, stream.url)
	w := a.worker("first", a.fleet.config)
	a.putUntil(200)
	a.waitUntilStored()
	w.signal(os.Kill)
	w.waitForExit(time.Minute)
	out, err := a.streams.Client().ListShards(t.Context(), &kinesis.ListShardsInput{StreamName: &a.stream})
	if err != nil {
		t.Fatal(err)
	}
	children := a.split(out.Shards[0])
	a.putUntil(400)
	unseen := *children[0].ShardId
	a.split(children[0])
	stream.hidden.Store(&map[string]bool{*out.Shards[0].ShardId: true, unseen: true})
	w = a.worker("second", a.fleet.config)
	a.putUntil(600)
	a.waitUntil(time.Minute, "gap of "+unseen, func() bool {
		return strings.Contains(strings.Join(a.list(), "\n"), "/_"+unseen+"-")
	})
	a.waitUntil(time.Minute, "stored behind it", func() bool {
		a.putUntil(a.put + 10)
		a.readNew()
		return len(a.records) > 500
	})
	w.signal(syscall.SIGTERM)
	if code, _ := w.waitForExit(time.Minute); code != 0 {
		t.Errorf("the exit code is %d", code)
	}
	cmd := exec.CommandContext(t.Context(), a.fleet.binary, "archive", "verify", "--deep", "--json", "-c", a.fleet.config)
	cmd.Env = append(os.Environ(), a.fleet.env...)
	said, err := cmd.CombinedOutput()
	if t.Logf("verify: %s", said); err != nil {
		t.Errorf("verify: %v", err)
	}
}
