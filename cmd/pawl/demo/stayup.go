package demo

import (
	"context"
	"path/filepath"
	"strings"
	"time"
)

const deadPoll = 500 * time.Millisecond

const pipelineUsage = `
Try it. Upload a picture:

  AWS_ACCESS_KEY_ID=%[1]s AWS_SECRET_ACCESS_KEY=%[1]s AWS_DEFAULT_REGION=%[2]s aws --endpoint-url %[3]s s3 cp cat.jpg s3://%[4]s/%[5]scat.jpg

Its grayscale appears as s3://%[6]s/%[7]scat.jpg. Show its state and history:

  %[10]s explain -c %[8]s s3://%[4]s/%[5]scat.jpg

The dashboard of a worker is http://%[11]s/

The ledger is %[9]s; the workers' logs are next to it.
Ctrl-C ends the demo and removes all of this.

`

// stayUp prints how to use the demo, and then all changes in the store. It returns an error if it
// cannot read the ledger.
func (s *pipelineScenario) stayUp(ctx context.Context) error {
	s.dropAnnouncements()
	s.screen.printText(pipelineUsage, accessKey, region, s.endpoint.url, inputBucket, inputPrefix, outputBucket, outputPrefix,
		shellWord(filepath.Join(s.dir, configFile)), filepath.Join(s.dir, ledgerFile), commandName(s.Binary), s.fleet.admins()[0])
	tick := time.NewTicker(deadPoll)
	defer tick.Stop()
	dead := map[string]int64{}
	for {
		select {
		case <-ctx.Done():
			return nil
		case c := <-s.announcements:
			s.announce(c)
		case <-tick.C:
			rs, err := readRows(ctx, s.ledger)
			if ctx.Err() != nil {
				return nil
			}
			if err != nil {
				return err
			}
			for _, line := range rs.newlyDead(dead) {
				s.screen.failed("%s", line)
			}
		}
	}
}

// dropAnnouncements discards the changes during the checks.
func (s *pipelineScenario) dropAnnouncements() {
	for {
		select {
		case <-s.announcements:
		default:
			return
		}
	}
}

func (s *pipelineScenario) announce(c change) {
	if c.bucket == inputBucket {
		if !c.removed {
			s.screen.failed("%s is ignored: %s", object(c.bucket, c.key), mismatchReason(c.key))
		}
		return
	}
	verb := "was created"
	switch {
	case c.removed:
		verb = "was removed"
	case c.existed:
		verb = "was replaced"
	}
	s.screen.done("%s %s", object(c.bucket, c.key), verb)
}

// mismatchReason returns "" if the pipeline matches.
func mismatchReason(key string) string {
	if !strings.HasPrefix(key, inputPrefix) {
		return "the pipeline matches keys that begin with " + inputPrefix
	}
	for _, suffix := range suffixes {
		if strings.HasSuffix(key, suffix) {
			return ""
		}
	}
	return "the pipeline matches keys that end in one of " + strings.Join(suffixes, " ")
}
