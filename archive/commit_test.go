package archive_test

import (
	"strings"
	"testing"
	"time"

	"github.com/pawlhq/pawl/bucket"
	"github.com/pawlhq/pawl/event"
)

func (p *env) remove(key string) {
	p.Helper()
	if err := p.store.Delete(p.Context(), event.Object{Bucket: "b", Key: key}, bucket.Condition{}); err != nil {
		p.Fatal(err)
	}
}

func TestDeletedBeforeCommit(t *testing.T) {
	for name, next := range map[string]func(p *env, stop func() error){
		"shutdown": func(p *env, stop func() error) {
			if err := stop(); err != nil {
				p.Fatal(err)
			}
		},
		"quiet": func(p *env, stop func() error) {
			time.Sleep(2 * time.Hour)
			if err := stop(); err != nil {
				p.Fatal(err)
			}
			if log := p.log.String(); !strings.Contains(log, "was announced but is not stored") {
				p.Errorf("the log does not name the object:\n%s", log)
			}
		},
		"end": func(p *env, stop func() error) {
			if err := p.stream.Split(p.Context(), p.shards()[0]); err != nil {
				p.Fatal(err)
			}
			time.Sleep(2 * time.Minute)
			if err := stop(); err != nil {
				p.Fatal(err)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			withEnv(t, 1, func(p *env) {
				p.put(p.shards()[0], 3)
				stop := p.run(p.archive("ndjson"))
				time.Sleep(time.Minute)
				for key := range p.objects() {
					p.remove(key)
				}
				next(p, stop)
				stop = p.run(p.archive("ndjson"))
				time.Sleep(2 * time.Minute)
				if err := stop(); err != nil {
					t.Fatal(err)
				}
				p.expectVerified(p.archive("ndjson"), 3)
			})
		})
	}
}
