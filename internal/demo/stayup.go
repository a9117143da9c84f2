package demo

import (
	"context"
	"fmt"
	"path/filepath"
)

const invitation = `
Now you. Copy a picture in:

  AWS_ACCESS_KEY_ID=%[1]s AWS_SECRET_ACCESS_KEY=%[1]s AWS_DEFAULT_REGION=%[2]s aws --endpoint-url %[3]s s3 cp cat.jpg s3://%[4]s/%[5]scat.jpg

Its grayscale appears as s3://%[6]s/%[7]scat.jpg. What became of it, and why:

  pawl explain -c %[8]s s3://%[4]s/%[5]scat.jpg

The ledger is %[9]s; the workers' logs lie beside it.
Ctrl-C ends the demo and removes all of this.

`

// stayUp tells people how to use the store, and what happens in it, until ctx
// ends.
func (s *show) stayUp(ctx context.Context) {
	s.screen.say(invitation, accessKey, region, s.endpoint.url, inputBucket, inputPrefix, outputBucket, outputPrefix,
		filepath.Join(s.dir, configFile), filepath.Join(s.dir, ledgerFile))
	s.forgetNews()
	for {
		select {
		case <-ctx.Done():
			return
		case c := <-s.news:
			s.screen.done("%s", announcement(c))
		}
	}
}

// forgetNews drops what happened during the show.
func (s *show) forgetNews() {
	for {
		select {
		case <-s.news:
		default:
			return
		}
	}
}

func announcement(c change) string {
	verb := "is there"
	switch {
	case c.removed:
		verb = "is removed"
	case c.existed:
		verb = "is new"
	}
	return fmt.Sprintf("%s %s", object(c.bucket, c.key), verb)
}
