package sqssource_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/pawlhq/pawl/proof/servertest"
	"github.com/pawlhq/pawl/source/sqssource"
)

func maxMessage(t *testing.T, url string, set ...func(*sqssource.Source)) (int64, error) {
	t.Helper()
	s, err := sqssource.New(t.Context(), sqssource.Config{URL: url})
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range set {
		f(s)
	}
	return s.MaxMessage(t.Context())
}

// ElasticMQ reports none by default.
func maxMessageOfQueue(t *testing.T, server *servertest.Queues) {
	url := server.NewQueue(t, nil)
	if size, err := maxMessage(t, server.WithMaxMessage(t, url, 32768)); err != nil || size != 32768 {
		t.Errorf("MaxMessage = %d, %v, want 32768", size, err)
	}
	for says, url := range map[string]string{
		"the queue reports no MaximumMessageSize": url,
		"the queue does not exist":                url + "x",
	} {
		if _, err := maxMessage(t, url); err == nil || !strings.Contains(err.Error(), says) || !strings.Contains(err.Error(), url) {
			t.Errorf("MaxMessage = %v, want it to name the queue and say %q", err, says)
		}
	}
}

func TestMaxMessageIsDenied(t *testing.T) {
	credentials(t)
	f := newFake()
	f.refuse = func(string, string) (int, string) { return http.StatusForbidden, "AccessDenied" }
	_, err := maxMessage(t, "https://sqs.eu-west-1.amazonaws.com/123456789012/uploads", func(s *sqssource.Source) { s.SetServer(f.do) })
	if err == nil || !strings.Contains(err.Error(), "allow sqs:GetQueueAttributes") {
		t.Errorf("MaxMessage = %v, want it to name the permission", err)
	}
}
