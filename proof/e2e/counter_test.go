//go:build unix

package e2e

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"sync"
	"testing"
	"time"

	"github.com/pawlhq/pawl/event"
	"github.com/pawlhq/pawl/proof/servertest"
)

var increments = flag.Int("increments", 400, "number of increments of TestCounter on each server")

const updaters = 16

// increment is an awk filter for {"n": 1}.
const increment = `{ n = $0 } END { gsub(/[^0-9]/, "", n); printf "{\"n\": %d}\n", n + 1 }`

func TestCounter(t *testing.T) {
	servertest.Long(t)
	t.Parallel()
	binary := build(t)
	servertest.Each(t, servertest.Options{}, func(t *testing.T, server *servertest.Server) {
		name, cache := server.NewBucket(t), t.TempDir()
		start := time.Now()
		var wg sync.WaitGroup
		var mu sync.Mutex
		tries, most := 0, 0
		for i := range updaters {
			wg.Go(func() {
				for n := i; n < *increments; n += updaters {
					took, err := update(t, binary, server, "s3://"+name+"/counter.json", cache)
					if err != nil {
						t.Error(err)
						return
					}
					mu.Lock()
					tries, most = tries+took, max(most, took)
					mu.Unlock()
				}
			})
		}
		wg.Wait()
		_, body, err := open(t, server).Get(t.Context(), event.Object{Bucket: name, Key: "counter.json"})
		if err != nil {
			t.Fatal(err)
		}
		defer body.Close()
		var counter struct{ N int }
		if err := json.NewDecoder(body).Decode(&counter); err != nil || counter.N != *increments {
			t.Errorf("the counter is %d, %v: want %d", counter.N, err, *increments)
		}
		t.Logf("%d increments by %d concurrent processes in %v; attempts per increment: mean %.2f, maximum %d", *increments, updaters, time.Since(start).Round(time.Second), float64(tries)/float64(*increments), most)
	})
}

func update(t *testing.T, binary string, server *servertest.Server, object, cache string) (int, error) {
	cmd := exec.CommandContext(t.Context(), binary, "update", "--json", "--create", "--endpoint", server.Endpoint, object, "--", "awk", increment)
	cmd.Env = append(os.Environ(), "AWS_ACCESS_KEY_ID="+server.AccessKey, "AWS_SECRET_ACCESS_KEY="+server.SecretKey, "AWS_REGION="+server.Region,
		"AWS_EC2_METADATA_DISABLED=true", "XDG_CACHE_HOME="+cache)
	var out, complaints bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &complaints
	if err := cmd.Run(); err != nil {
		return 0, fmt.Errorf("pawl update: %w: %s", err, complaints.String())
	}
	var result struct {
		Written bool
		Tries   int
	}
	if err := json.Unmarshal(out.Bytes(), &result); err != nil || !result.Written {
		return 0, fmt.Errorf("pawl update printed %q: %w", out.String(), err)
	}
	return result.Tries, nil
}
