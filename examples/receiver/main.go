// Command receiver is a web service for an http pipeline. It accepts only signed requests, does
// nothing twice, and rejects workers that have outlived their lease.
package main

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"log"
	"net/http"
	"os"
	"strconv"
	"sync"

	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"

	"github.com/pawlhq/pawl/action"
)

func main() {
	verifier, err := standardwebhooks.NewWebhook(os.Getenv("LOAD_SECRET")) // whsec_…, the secret of the pipeline
	if err != nil {
		log.Fatal("LOAD_SECRET: ", err)
	}
	r := &receiver{verifier: verifier, done: map[string]bool{}, fences: map[string]int64{}}
	log.Fatal(http.ListenAndServe(cmp.Or(os.Getenv("LISTEN"), "127.0.0.1:9000"), r))
}

// A real receiver stores the completed effect in its own database, in one transaction with the
// effect.
type receiver struct {
	verifier *standardwebhooks.Webhook

	mu     sync.Mutex
	done   map[string]bool  // by idempotency key
	fences map[string]int64 // highest fence of each object
}

// ServeHTTP answers 200 for a completed effect, even if it was completed before. Other answers
// below 500 are permanent errors.
func (r *receiver) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	body, err := io.ReadAll(http.MaxBytesReader(w, req.Body, 1<<20))
	if err != nil {
		http.Error(w, err.Error(), http.StatusServiceUnavailable)
		return
	}
	var facts action.Facts
	if err := r.verifier.Verify(body, req.Header); err != nil {
		http.Error(w, err.Error(), http.StatusUnauthorized)
		return
	}
	if err := json.Unmarshal(body, &facts); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	object := strconv.Quote(facts.Bucket + "/" + facts.Key)
	switch {
	case r.done[facts.IdempotencyKey]:
		fmt.Println("known", object)
	case facts.Fence < r.fences[object]:
		http.Error(w, "a newer attempt has this object", http.StatusConflict)
		return
	default:
		fmt.Println("loading", object, facts.Kind) // the effect
		r.done[facts.IdempotencyKey], r.fences[object] = true, facts.Fence
	}
	w.WriteHeader(http.StatusOK)
}
