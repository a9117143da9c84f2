package kinesisstream

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/kinesis"
	"github.com/aws/aws-sdk-go-v2/service/kinesis/types"

	"github.com/pawlhq/pawl/archive"
	"github.com/pawlhq/pawl/internal/process"
)

// Pauses after a read. A shard allows five reads per second. After an empty read the pause is
// longer.
const (
	betweenReads = 200 * time.Millisecond
	idle         = time.Second
)

// maxEmptyReads is the number of empty reads at the end of a shard after which the expected record
// counts as expired. A single read may return nothing although records exist.
const maxEmptyReads = 3

type reader struct {
	*Stream
	shard string
	from  archive.Position

	iterator   string         // empty if there is none, or if it has expired
	last       archive.Number // empty before the first
	expect     archive.Number // the next records must start with this one; empty for any
	emptyReads int            // empty reads at the end of the shard while expect is set
	ended      bool

	first *archive.Page // read by Open
	next  time.Time     // earliest time of the next read
}

// Open implements [archive.Stream]. It checks that the record at the position still exists.
func (s *Stream) Open(ctx context.Context, shard string, from archive.Position) (archive.Reader, error) {
	r := &reader{Stream: s, shard: shard, from: from}
	if err := r.newIterator(ctx); err != nil {
		return nil, err
	}
	for r.expect != "" {
		page, err := r.read(ctx)
		if err != nil {
			return nil, err
		}
		r.first = &page
	}
	return r, nil
}

func (r *reader) Next(ctx context.Context) (archive.Page, error) {
	if page := r.first; page != nil {
		r.first = nil
		return *page, nil
	}
	return r.read(ctx)
}

func (r *reader) read(ctx context.Context) (archive.Page, error) {
	if r.ended {
		return archive.Page{End: true}, nil
	}
	for {
		if r.iterator == "" {
			if err := r.newIterator(ctx); err != nil {
				return archive.Page{}, err
			}
		}
		if err := process.Sleep(ctx, time.Until(r.next)); err != nil {
			return archive.Page{}, err
		}
		_, arn := r.nameOrARN()
		out, err := call(ctx, r.Stream, "reading "+r.shard+" of", r.client.GetRecords, &kinesis.GetRecordsInput{
			ShardIterator: &r.iterator, StreamARN: arn,
		})
		r.next = time.Now().Add(betweenReads)
		if _, expired := errors.AsType[*types.ExpiredIteratorException](err); expired {
			r.iterator = ""
			continue
		}
		if err != nil {
			return archive.Page{}, err
		}
		return r.page(out)
	}
}

func (r *reader) newIterator(ctx context.Context) error {
	in := &kinesis.GetShardIteratorInput{ShardId: &r.shard, ShardIteratorType: types.ShardIteratorTypeTrimHorizon}
	in.StreamName, in.StreamARN = r.nameOrARN()
	r.expect, r.emptyReads = r.from.At, 0
	if r.last != "" {
		r.expect = r.last
	}
	switch {
	case r.expect != "":
		in.ShardIteratorType = types.ShardIteratorTypeAtSequenceNumber
		in.StartingSequenceNumber = aws.String(string(r.expect))
	case !r.from.Time.IsZero():
		in.ShardIteratorType = types.ShardIteratorTypeAtTimestamp
		in.Timestamp = &r.from.Time
	}
	out, err := call(ctx, r.Stream, "getting an iterator for "+r.shard+" of", r.client.GetShardIterator, in)
	if _, invalid := errors.AsType[*types.InvalidArgumentException](err); invalid && r.expect != "" {
		return r.goneError(err)
	}
	if err == nil {
		r.iterator = aws.ToString(out.ShardIterator)
	}
	return err
}

func (r *reader) page(out *kinesis.GetRecordsOutput) (archive.Page, error) {
	page := archive.Page{Behind: time.Duration(aws.ToInt64(out.MillisBehindLatest)) * time.Millisecond}
	for i := range out.Records {
		page.Records = append(page.Records, recordOf(&out.Records[i]))
	}
	r.iterator, r.ended = aws.ToString(out.NextShardIterator), out.NextShardIterator == nil
	page.End = r.ended
	if r.expect != "" {
		if len(page.Records) == 0 && page.Behind == 0 {
			r.emptyReads++
		}
		switch {
		case len(page.Records) == 0 && r.emptyReads < maxEmptyReads && !page.End:
			return page, nil // the expected record may follow
		case len(page.Records) == 0:
			return archive.Page{}, r.goneError(errors.New("the shard has no more records"))
		case page.Records[0].Number != r.expect:
			return archive.Page{}, r.goneError(fmt.Errorf("the first record is %s", page.Records[0].Number))
		case r.expect == r.last:
			page.Records = page.Records[1:] // the caller already has it
		}
		r.expect = ""
	}
	if n := len(page.Records); n > 0 {
		r.last = page.Records[n-1].Number
	} else if page.Behind == 0 {
		r.next = r.next.Add(idle - betweenReads)
	}
	return page, nil
}

func recordOf(in *types.Record) archive.Record {
	e := archive.Record{
		Number: archive.Number(aws.ToString(in.SequenceNumber)), PartitionKey: aws.ToString(in.PartitionKey),
		Arrival: aws.ToTime(in.ApproximateArrivalTimestamp).UTC().Truncate(time.Millisecond),
	}
	decodeData(&e, in.Data)
	return e
}

func (r *reader) goneError(why error) error {
	err := fmt.Errorf("reading %s of the stream %s from record %s: %w: %w", r.shard, r.name, r.expect, archive.ErrGone, why)
	r.iterator, r.ended = "", false // otherwise the next read would skip the lost records
	return err
}
