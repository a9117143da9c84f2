package sqssource_test

import (
	"context"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/pawlhq/pawl/event"
	"github.com/pawlhq/pawl/source"
	"github.com/pawlhq/pawl/source/sourcetest"
	"github.com/pawlhq/pawl/source/sqssource"
)

func TestPermanentErrorsAtStart(t *testing.T) {
	for _, tc := range []struct{ action, code, want string }{
		{"DeleteMessageBatch", "QueueDoesNotExist", "the queue does not exist: create it, or correct its URL"},
		{"DeleteMessageBatch", "AccessDeniedException", "allow sqs:ReceiveMessage, sqs:DeleteMessage and sqs:ChangeMessageVisibility"},
		{"ChangeMessageVisibilityBatch", "AccessDenied", "allow sqs:ReceiveMessage, sqs:DeleteMessage and sqs:ChangeMessageVisibility"},
		{"ReceiveMessage", "AccessDenied", "allow sqs:ReceiveMessage, sqs:DeleteMessage and sqs:ChangeMessageVisibility"},
		{"ReceiveMessage", "KMS.AccessDeniedException", "allow kms:Decrypt on the queue's key"},
		{"DeleteMessageBatch", "InvalidAddress", "the queue is in another region: correct its URL"},
		{"DeleteMessageBatch", "SignatureDoesNotMatch", "another region"},
		{"DeleteMessageBatch", "InvalidClientTokenId", "correct the credentials"},
		{"ReceiveMessage", "NobodyKnows", "NobodyKnows"},
	} {
		t.Run(tc.action+"/"+tc.code, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				f, l, sink := newFake(), &log{}, sourcetest.NewSink(1)
				f.refuse = func(action, _ string) (int, string) {
					if action == tc.action {
						return http.StatusBadRequest, tc.code
					}
					return 0, ""
				}
				r := f.run(t, sink, l)
				err := sourcetest.Wait(t, r.ended, "the end of Run")
				if err == nil || !strings.Contains(err.Error(), tc.want) || !strings.Contains(err.Error(), "https://sqs.eu-west-1.amazonaws.com/123456789012/uploads (region eu-west-1)") {
					t.Errorf("Run = %v, want it to name the queue and say %q", err, tc.want)
				}
			})
		})
	}
}

func TestNoSuchHost(t *testing.T) {
	bubble(t, func(t *testing.T) {
		f, l := newFake(), &log{}
		r := f.run(t, sourcetest.NewSink(1), l, func(s *sqssource.Source) {
			s.SetServer(func(r *http.Request) (*http.Response, error) {
				return nil, &net.DNSError{Err: "no such host", Name: r.URL.Host, IsNotFound: true}
			})
		})
		if err := sourcetest.Wait(t, r.ended, "the end of Run"); err == nil || !strings.Contains(err.Error(), "correct the region in the URL") {
			t.Errorf("Run = %v", err)
		}
	})
}

// An error about the message that does not exist is ignored.
func TestOutageAtStart(t *testing.T) {
	bubble(t, func(t *testing.T) {
		f, l, sink := newFake(sourcetest.Payload("a")), &log{}, sourcetest.NewSink(1)
		answers := map[string][]string{
			"DeleteMessageBatch":           {"ExpiredToken", "RequestThrottled", "InternalFailure", "ReceiptHandleIsInvalid"},
			"ChangeMessageVisibilityBatch": {"ExpiredTokenException", "InvalidParameterValue"},
			"ReceiveMessage":               {"ExpiredTokenException"},
		}
		f.refuse = func(action, handle string) (int, string) {
			left := answers[action]
			if handle != "" || len(left) == 0 {
				return 0, ""
			}
			answers[action] = left[1:]
			if left[0] == "InternalFailure" {
				return http.StatusInternalServerError, left[0]
			}
			return http.StatusBadRequest, left[0]
		}
		f.run(t, sink, l)
		sleep(2 * time.Minute)
		sink.Next(t).Done(source.Outcome{Ack: true})
		if n := l.lines("the credentials have expired: renew them"); n == 0 {
			t.Error("the log does not say that the credentials have expired")
		}
	})
}

func TestDenialAfterStartIsTransient(t *testing.T) {
	bubble(t, func(t *testing.T) {
		f, l, sink := newFake(), &log{}, sourcetest.NewSink(1)
		denied := false
		f.refuse = func(string, string) (int, string) {
			if denied {
				return http.StatusForbidden, "AccessDenied"
			}
			return 0, ""
		}
		f.run(t, sink, l)
		sleep(30 * time.Second)
		f.update(func() { denied = true })
		sleep(5 * time.Minute)
		f.update(func() { denied = false })
		f.add("m", sourcetest.Payload("a"))
		sleep(time.Minute)
		sink.Next(t).Done(source.Outcome{Ack: true})
		if n := l.lines("allow sqs:ReceiveMessage"); n == 0 || n > 8 {
			t.Errorf("logged the remedy %d times in five minutes", n)
		}
	})
}

func TestUnreachableServer(t *testing.T) {
	credentials(t)
	l := &log{}
	r := run(t, sqssource.Config{URL: "http://127.0.0.1:1/000000000000/uploads", Logger: logger(l)}, sourcetest.NewSink(1))
	for l.lines("the queue cannot be used; retrying") == 0 {
		select {
		case err := <-r.ended:
			t.Fatalf("Run = %v", err)
		case <-time.After(time.Millisecond):
		}
	}
	r.cancel()
	if err := sourcetest.Wait(t, r.ended, "the end of Run"); err != nil {
		t.Error(err)
	}
}

func TestConfig(t *testing.T) {
	credentials(t)
	for url, region := range map[string]string{
		"https://sqs.eu-west-1.amazonaws.com/1/q":                   "eu-west-1",
		"https://sqs.cn-north-1.amazonaws.com.cn/1/q":               "cn-north-1",
		"https://sqs-fips.us-gov-west-1.amazonaws.com/1/q":          "us-gov-west-1",
		"https://eu-central-1.queue.amazonaws.com/1/q":              "eu-central-1",
		"https://vpce-0a-bc.sqs.us-east-2.vpce.amazonaws.com/1/q":   "us-east-2",
		"http://sqs.ap-south-1.localhost.localstack.cloud:4566/1/q": "ap-south-1",
		"http://127.0.0.1:9324/1/q":                                 "us-east-1",
		"https://sqs.internal.example.com/1/q":                      "us-east-1",
	} {
		s, err := sqssource.New(t.Context(), sqssource.Config{URL: url, Dialect: event.AWS})
		if err != nil {
			t.Fatal(err)
		}
		if got := s.Region(); got != region {
			t.Errorf("%s is signed for %s, want %s", url, got, region)
		}
		if d, trusts := s.Declares(); d != event.AWS || trusts {
			t.Errorf("declares %s, %t", d, trusts)
		}
	}
	for _, cfg := range []sqssource.Config{
		{}, {URL: "uploads"}, {URL: "arn:aws:sqs:eu-west-1:1:uploads"}, {URL: "https://sqs.eu-west-1.amazonaws.com/"},
		{URL: "https://user:geheim@sqs.eu-west-1.amazonaws.com/1/q"}, {URL: "ftp://host/1/q"}, {URL: "http://%geheim/1/q"},
		{URL: "http://127.0.0.1/1/q", Dialect: "cobol"}, {URL: "http://127.0.0.1/1/q", ShutdownTimeout: -1},
	} {
		if s, err := sqssource.New(t.Context(), cfg); err == nil || strings.Contains(err.Error(), "geheim") {
			t.Errorf("New(%+v) = %v, %v", cfg, s, err)
		}
	}
}

type untrustedSink struct{}

func (untrustedSink) Deliver(context.Context, source.Delivery) error { return source.ErrUntrusted }
func (untrustedSink) TryDeliver(source.Delivery) error               { return source.ErrUntrusted }

func TestUntrustedSequencerLeavesTheMessage(t *testing.T) {
	bubble(t, func(t *testing.T) {
		f, l := newFake(sourcetest.Payload("a")), &log{}
		f.run(t, untrustedSink{}, l)
		sleep(time.Minute)
		wantRequests(t, f)
		if n := l.lines("event order needs a trusted sequencer"); n != 1 {
			t.Errorf("logged the reason %d times", n)
		}
	})
}
