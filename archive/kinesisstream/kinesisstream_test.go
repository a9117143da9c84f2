package kinesisstream

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	static "github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/kinesis"
	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/pawlhq/pawl/archive"
	"github.com/pawlhq/pawl/internal/virtualtime"
)

type script func(operation, body string) (status int, answer string, err error)

func (s script) RoundTrip(r *http.Request) (*http.Response, error) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, err
	}
	_, operation, _ := strings.Cut(r.Header.Get("X-Amz-Target"), ".")
	status, answer, err := s(operation, string(body))
	if err != nil {
		return nil, err
	}
	return &http.Response{
		StatusCode: status, Header: http.Header{"Content-Type": {"application/x-amz-json-1.1"}}, Body: io.NopCloser(strings.NewReader(answer)),
	}, nil
}

func scripted(name string, s script) *Stream {
	cfg := aws.Config{Region: "eu-west-1", Credentials: static.NewStaticCredentialsProvider("AKIA", "very-secret", "")}
	return newStream(name, cfg, func(o *kinesis.Options) { o.HTTPClient = &http.Client{Transport: s} })
}

func TestErrors(t *testing.T) {
	for _, tc := range []struct {
		status int
		answer string
		err    error
		want   error // nil: no kind
		after  time.Duration
	}{
		{400, `{"__type":"ResourceNotFoundException","message":"Stream s under account 1 not found."}`, nil, archive.ErrNoStream, 0},
		{400, `{"__type":"AccessDeniedException","Message":"not authorized"}`, nil, archive.ErrDenied, 0},
		{400, `{"__type":"UnrecognizedClientException","message":"The security token is invalid"}`, nil, archive.ErrDenied, 0},
		{400, `{"__type":"KMSDisabledException","message":"disabled"}`, nil, archive.ErrDenied, 0},
		{403, `{}`, nil, archive.ErrDenied, 0},
		{400, `{"__type":"InvalidArgumentException","message":"bad"}`, nil, nil, 0},
		{400, `{"__type":"ProvisionedThroughputExceededException","message":"Rate exceeded"}`, nil, archive.ErrUnavailable, retryTimeout},
		{400, `{"__type":"LimitExceededException","message":"Rate exceeded"}`, nil, archive.ErrUnavailable, retryTimeout},
		{400, `{"__type":"KMSThrottlingException","message":"slow down"}`, nil, archive.ErrUnavailable, retryTimeout},
		{500, `{"__type":"InternalFailure"}`, nil, archive.ErrUnavailable, retryTimeout},
		{503, `<html>`, nil, archive.ErrUnavailable, retryTimeout},
		{200, `{"StreamDescr`, nil, archive.ErrUnavailable, retryTimeout},
		{0, "", errors.New("dial tcp: connection refused"), archive.ErrUnavailable, retryTimeout},
	} {
		t.Run(fmt.Sprint(tc.status, tc.answer), func(t *testing.T) {
			virtualtime.Test(t, func(t *testing.T) {
				calls, start := 0, time.Now()
				s := scripted("orders", func(string, string) (int, string, error) { calls++; return tc.status, tc.answer, tc.err })
				_, _, err := s.Identify(t.Context())
				took := time.Since(start)
				for _, kind := range []error{archive.ErrNoStream, archive.ErrDenied, archive.ErrUnavailable, archive.ErrGone} {
					if errors.Is(err, kind) != (kind == tc.want) {
						t.Errorf("%v, want %v", err, tc.want)
					}
				}
				if err == nil || !strings.Contains(err.Error(), "describing the stream orders") || strings.Contains(err.Error(), "very-secret") {
					t.Errorf("it says %v", err)
				}
				if took > tc.after || tc.after > 0 && (took < tc.after/2 || calls < 10) || tc.after == 0 && calls != 1 {
					t.Errorf("%d calls in %s, want to give up after %s", calls, took, tc.after)
				}
			})
		})
	}
}

func TestNoCredentials(t *testing.T) {
	s := scripted("orders", func(string, string) (int, string, error) { t.Error("a request is sent"); return 0, "", io.EOF })
	s.client = kinesis.New(s.client.Options(), func(o *kinesis.Options) {
		o.Credentials = credentials{aws.CredentialsProviderFunc(func(context.Context) (aws.Credentials, error) {
			return aws.Credentials{}, errors.New("no EC2 IMDS role found")
		})}
	})
	if _, err := s.Shards(t.Context()); !errors.Is(err, archive.ErrDenied) || !strings.Contains(err.Error(), "IMDS") {
		t.Errorf("%v, want ErrDenied", err)
	}
}

func TestAllPages(t *testing.T) {
	for _, name := range []string{"orders", "arn:aws:kinesis:eu-west-1:1:stream/orders"} {
		s := scripted(name, func(_, body string) (int, string, error) {
			switch {
			case strings.Contains(body, `"NextToken":"two"`) && !strings.Contains(body, "StreamName"):
				return 200, `{"Shards":[{"ShardId":"c","ParentShardId":"a","AdjacentParentShardId":"b",
					"SequenceNumberRange":{"StartingSequenceNumber":"9"}}]}`, nil
			case strings.Contains(body, "orders"):
				return 200, `{"NextToken":"two","Shards":[
					{"ShardId":"a","SequenceNumberRange":{"StartingSequenceNumber":"1","EndingSequenceNumber":"8"}},{"ShardId":"b"}]}`, nil
			}
			t.Errorf("asked with %s", body)
			return 500, "", nil
		})
		got, err := s.Shards(t.Context())
		want := []archive.Shard{{ID: "a", First: "1", Last: "8"}, {ID: "b"}, {ID: "c", Parents: []string{"a", "b"}, First: "9"}}
		if diff := cmp.Diff(want, got, cmpopts.IgnoreUnexported(archive.Shard{})); diff != "" || err != nil {
			t.Errorf("%v (-want +got):\n%s", err, diff)
		}
	}
}

// Each step of reads is a response or an exception.
func reads(t *testing.T, steps ...string) (*Stream, *[]string) {
	asked := new([]string)
	return scripted("orders", func(operation, body string) (int, string, error) {
		if operation == "GetShardIterator" {
			*asked = append(*asked, body)
			return 200, `{"ShardIterator":"new"}`, nil
		}
		if len(steps) == 0 {
			t.Fatal("read once more")
		}
		step := steps[0]
		steps = steps[1:]
		if strings.HasPrefix(step, "{") {
			return 200, step, nil
		}
		return 400, fmt.Sprintf(`{"__type":%q}`, step), nil
	}), asked
}

const (
	one    = `{"SequenceNumber":"1","Data":"YQ==","PartitionKey":"k","ApproximateArrivalTimestamp":1767355200.123}`
	two    = `{"SequenceNumber":"2","Data":"Yg==","PartitionKey":"k","ApproximateArrivalTimestamp":1767355200.124}`
	behind = `{"Records":[],"NextShardIterator":"i","MillisBehindLatest":5}`
	atTip  = `{"Records":[],"NextShardIterator":"i","MillisBehindLatest":0}`
)

func page(records string) string {
	return `{"Records":[` + records + `],"NextShardIterator":"i","MillisBehindLatest":5}`
}

func TestReadsArePaced(t *testing.T) {
	virtualtime.Test(t, func(t *testing.T) {
		s, _ := reads(t, page(one), behind, page(two), atTip, atTip, behind)
		r, err := s.Open(t.Context(), "a", archive.Position{})
		if err != nil {
			t.Fatal(err)
		}
		start := time.Now()
		var got []time.Duration
		for range 6 {
			if _, err := r.Next(t.Context()); err != nil {
				t.Fatal(err)
			}
			got = append(got, time.Since(start))
		}
		want := []time.Duration{0, betweenReads, 2 * betweenReads, 3 * betweenReads, 3*betweenReads + idle, 3*betweenReads + 2*idle}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	})
}

func TestThrottledForHalfAMinute(t *testing.T) {
	virtualtime.Test(t, func(t *testing.T) {
		start := time.Now()
		calls := 0
		s := scripted("orders", func(operation, _ string) (int, string, error) {
			switch calls++; {
			case operation == "GetShardIterator":
				return 200, `{"ShardIterator":"new"}`, nil
			case time.Since(start) < 30*time.Second:
				return 400, `{"__type":"ProvisionedThroughputExceededException"}`, nil
			}
			return 200, page(one), nil
		})
		r, err := s.Open(t.Context(), "a", archive.Position{})
		if err != nil {
			t.Fatal(err)
		}
		got, err := r.Next(t.Context())
		if err != nil || len(got.Records) != 1 || calls > 30 {
			t.Errorf("%+v, %v after %d calls", got, err, calls)
		}
	})
}

// The record at the position must come first, even after empty pages.
func TestAnchor(t *testing.T) {
	virtualtime.Test(t, func(t *testing.T) {
		s, asked := reads(t, behind, atTip, atTip, behind, page(one), "ExpiredIteratorException", behind, page(one+","+two), "ExpiredIteratorException", page(one))
		r, err := s.Open(t.Context(), "a", archive.Position{At: "1"})
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for range 3 {
			p, err := r.Next(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			var numbers []string
			for _, e := range p.Records {
				numbers = append(numbers, string(e.Number))
			}
			got = append(got, strings.Join(numbers, " "))
		}
		if diff := cmp.Diff([]string{"1", "", "2"}, got); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
		if p, err := r.Next(t.Context()); !errors.Is(err, archive.ErrGone) || !strings.Contains(err.Error(), "the first record is 1") {
			t.Errorf("%+v, %v: want ErrGone", p, err)
		}
		for i, want := range []string{`"1"`, `"1"`, `"2"`} {
			if !strings.Contains((*asked)[i], `"StartingSequenceNumber":`+want) || !strings.Contains((*asked)[i], "AT_SEQUENCE_NUMBER") {
				t.Errorf("iterator %d is asked for with %s", i, (*asked)[i])
			}
		}
	})
}

func TestAnchorAtTheEnd(t *testing.T) {
	virtualtime.Test(t, func(t *testing.T) {
		const end = `{"Records":[],"MillisBehindLatest":0}`
		s, _ := reads(t, page(one), "ExpiredIteratorException", end, end)
		r, err := s.Open(t.Context(), "a", archive.Position{})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := r.Next(t.Context()); err != nil {
			t.Fatal(err)
		}
		for range 2 {
			if p, err := r.Next(t.Context()); !errors.Is(err, archive.ErrGone) {
				t.Errorf("%+v, %v: want ErrGone", p, err)
			}
		}
	})
}

func TestAnchorWithoutASuccessor(t *testing.T) {
	virtualtime.Test(t, func(t *testing.T) {
		s, _ := reads(t, behind, atTip, atTip, behind, behind, atTip)
		if _, err := s.Open(t.Context(), "a", archive.Position{At: "1"}); !errors.Is(err, archive.ErrGone) {
			t.Errorf("%v, want ErrGone", err)
		}
	})
}

// The shard cannot have this number.
func TestAnchorOfAnotherShard(t *testing.T) {
	s := scripted("orders", func(string, string) (int, string, error) {
		return 400, `{"__type":"InvalidArgumentException","message":"StartingSequenceNumber is invalid"}`, nil
	})
	if _, err := s.Open(t.Context(), "a", archive.Position{At: "1"}); !errors.Is(err, archive.ErrGone) {
		t.Errorf("at an entry: %v, want ErrGone", err)
	}
	if _, err := s.Open(t.Context(), "a", archive.Position{}); err == nil || errors.Is(err, archive.ErrGone) {
		t.Errorf("at the beginning: %v", err)
	}
}

func TestNew(t *testing.T) {
	for _, name := range []string{"AWS_REGION", "AWS_DEFAULT_REGION", "AWS_PROFILE"} {
		t.Setenv(name, "")
	}
	t.Setenv("AWS_CONFIG_FILE", "/nowhere")
	const arn = "arn:aws:kinesis:eu-north-1:123456789012:stream/orders"
	for _, tc := range []struct {
		c      Config
		region string
		err    string
	}{
		{Config{}, "", "no stream"},
		{Config{Stream: "orders"}, "", "no region"},
		{Config{Stream: "orders", Region: "eu-west-1"}, "eu-west-1", ""},
		{Config{Stream: arn}, "eu-north-1", ""},
		{Config{Stream: arn, Region: "eu-west-1"}, "eu-west-1", ""},
		{Config{Stream: "orders", Endpoint: "http://127.0.0.1:1"}, "us-east-1", ""},
		{Config{Stream: "orders", Endpoint: "http://user:pass@127.0.0.1:1"}, "", "without a user name"},
		{Config{Stream: "orders", Endpoint: "127.0.0.1:1"}, "", "must look like"},
	} {
		s, err := New(t.Context(), tc.c)
		switch {
		case tc.err != "":
			if err == nil || !strings.Contains(err.Error(), tc.err) || strings.Contains(err.Error(), "pass@") {
				t.Errorf("%+v: %v, want %q", tc.c, err, tc.err)
			}
		case err != nil || s.region != tc.region:
			t.Errorf("%+v: %+v, %v", tc.c, s, err)
		}
	}
}
