package archive

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"
	"time"

	"github.com/pawlhq/pawl/bucket"
	"github.com/pawlhq/pawl/cell"
)

const (
	metaArchive = "pawl-archive"
	metaDigest  = "pawl-digest"
	// metaMalformed is the number of malformed records in the object's range; absent if zero.
	// Earlier versions of Pawl did not write it.
	metaMalformed = "pawl-malformed"
)

type encodedObject struct {
	Planned
	body   []byte
	isVoid bool
}

func (s *shard) store(ctx context.Context, runs []run) error {
	s.onStoring(true)
	objects := make([]encodedObject, len(runs))
	intent := Intent{Objects: make([]Planned, len(runs))}
	for i := range runs {
		o := s.planObject(&runs[i])
		body, err := s.encodeObject(&o, runs[i].records)
		if err != nil {
			return err
		}
		objects[i], intent.Objects[i] = encodedObject{Planned: o, body: body}, o
	}
	next, err := s.progress.Announce(intent)
	if err != nil {
		return err
	}
	signed := s.Store.StoreTime(s.Now())
	if err := s.write(ctx, next); err != nil {
		return err
	}
	s.sent = false
	if err := s.confirmClaim(ctx, s.claim); err != nil {
		return err
	}
	if err := s.sendAll(ctx, objects, signed); err != nil {
		return err
	}
	s.sent = true
	s.onStoring(false)
	return nil
}

// sendAll uploads objects with one signature until that has expired, and then signs each upload
// separately. Some stores reject an upload that ends after its signature has expired.
func (s *shard) sendAll(ctx context.Context, objects []encodedObject, signed time.Time) (err error) {
	alone := false
	for i := range objects {
		if alone = alone || s.expired(signed); alone {
			if signed, err = s.renewSignature(ctx); err != nil {
				return err
			}
		}
		_, expired, err := s.send(ctx, &objects[i], signed)
		if err != nil {
			return err
		}
		alone = alone || expired
	}
	return nil
}

func (s *shard) expired(signed time.Time) bool {
	return s.Store.StoreTime(s.Now()).Sub(signed) >= signatureValidity
}

func (s *shard) planObject(r *run) Planned {
	o := Planned{Range: r.Range, Format: s.Format, Count: len(r.records), Arrival: r.arrival, Malformed: r.malformed, Expired: r.expired}
	if r.gap {
		o.Format, o.Count, o.Anchor = GapFormat, 0, r.anchor
		r.records = nil
	} else {
		o.First = r.records[0].Number
	}
	o.Digest = s.digest(&o, r.records)
	at := r.arrival
	if at.IsZero() {
		at = s.since // the object is a gap at the beginning of the shard
	}
	o.Key = Name{Minute: minute(at), Shard: s.ID, Range: r.Range, Format: o.Format}.Key(s.Prefix)
	return o
}

func (s *shard) digest(o *Planned, records []Record) string { return digestOf(s.ID, o, records) }

func digestOf(shard string, o *Planned, records []Record) string {
	d := NewDigest(shard)
	for _, e := range records {
		if len(e.UserRecords) > 0 {
			d.Add(e)
		}
	}
	if o.isGap() {
		d.Add(Record{Number: o.End, UserRecords: []UserRecord{{Number: o.Start, Data: []byte(o.Range.String())}}})
	}
	return d.Sum()
}

func (s *shard) encodeObject(o *Planned, records []Record) ([]byte, error) {
	if o.isGap() {
		return newGapNote(s.ID, o), nil
	}
	body, err := s.Codec.Encode(o.Format, s.ID, records)
	if err == nil && len(body) == 0 {
		err = errors.New("the encoder returned no bytes")
	}
	if err != nil {
		return nil, fmt.Errorf("encoding %s as %s: %w", s.object(o.Key), o.Format, err)
	}
	return body, nil
}

// send uploads an object with a new signature for each retry. If a request fails, send checks the
// key, because another worker may have stored the same object or a void there.
func (s *shard) send(ctx context.Context, p *encodedObject, signed time.Time) (outcome cell.Outcome, expired bool, err error) {
	w := cell.Write{Shared: true}
	w.Send = func(ctx context.Context) error {
		answer := s.put(ctx, p, signed)
		if answer != nil && (errors.Is(answer, bucket.ErrExpired) || s.expired(signed)) {
			expired = true
			return fmt.Errorf("the signature has expired: %v", answer) // many stores report an expired signature as a missing permission
		}
		return answer
	}
	w.Look = func(ctx context.Context, _ error) (cell.Outcome, error) {
		stored, err := s.isStored(ctx, &p.Planned)
		switch {
		case stored && p.isVoid:
			return cell.Lost, nil
		case stored, p.isVoid && errors.Is(err, errVoid):
			return cell.Landed, nil
		}
		return cell.Unclear, err
	}
	w.Pace = func(ctx context.Context, try int, answer error) (err error) {
		if err = s.pace(ctx, try, answer); err == nil {
			signed, err = s.renewSignature(ctx)
		}
		return err
	}
	outcome, err = w.Run(ctx)
	if err == nil && !p.isVoid {
		s.reportStored(p.Planned)
	}
	return outcome, expired, err
}

func (s *shard) reportStored(o Planned) {
	s.onStored()
	s.logStored(s.ID, &o)
	if s.Observe != nil {
		s.Observe(s.ID, o)
	}
}

// renewSignature reads the clock before the register and the claim file. If both are unchanged, a
// recovery begins only after that time, and its wait covers this signature.
func (s *shard) renewSignature(ctx context.Context) (signed time.Time, err error) {
	signed = s.Store.StoreTime(s.Now())
	v, err := s.read(ctx, s.cell)
	if err != nil {
		return signed, err
	}
	if v.Version != s.version {
		return signed, fmt.Errorf("%w: %s has changed", ErrStale, s.cell)
	}
	return signed, s.confirmClaim(ctx, s.claim)
}

func (s *shard) put(ctx context.Context, p *encodedObject, signed time.Time) error {
	o := bucket.Object{
		Body: bytes.NewReader(p.body), Size: int64(len(p.body)), ContentType: "application/octet-stream",
		Metadata: map[string]string{metaArchive: s.claim.ID},
	}
	if p.isVoid {
		o.Metadata[metaVoid] = "1"
	} else {
		o.Metadata[metaDigest] = p.Digest
	}
	if n := len(p.Malformed); n > 0 && !p.isVoid {
		o.Metadata[metaMalformed] = strconv.Itoa(n)
	}
	_, err := s.Store.PutSigned(ctx, s.object(p.Key), o, bucket.Condition{IfAbsent: true}, signed, signatureValidity)
	return err
}

// isStored returns an error if another object is stored at the key.
func (s *shard) isStored(ctx context.Context, o *Planned) (stored bool, err error) {
	info, err := s.head(ctx, o.Key)
	switch {
	case errors.Is(err, bucket.ErrNotFound):
		return false, nil
	case err != nil:
		return false, err
	case voided(info):
		if id := info.Metadata[metaArchive]; id != "" && id != s.claim.ID {
			return false, s.foreignObjectError(o)
		}
		return false, errVoid
	case info.Metadata[metaArchive] == "" && info.Metadata[metaDigest] == "" && !o.isGap():
		return s.compareContent(ctx, o)
	case info.Metadata[metaArchive] != s.claim.ID || info.Metadata[metaDigest] != o.Digest:
		return false, s.foreignObjectError(o)
	}
	return true, nil
}

func (s *shard) foreignObjectError(o *Planned) error {
	return fmt.Errorf("%w: %s holds another object: nothing was overwritten; shard %s stops until that object is moved elsewhere",
		ErrBroken, s.object(o.Key), s.ID)
}

func (s *shard) compareContent(ctx context.Context, o *Planned) (bool, error) {
	_, body, err := s.Store.Get(ctx, s.object(o.Key))
	if err != nil {
		return false, err
	}
	defer body.Close()
	b, err := io.ReadAll(body)
	if err != nil {
		return false, err
	}
	records, err := s.Codec.Decode(o.Format, s.ID, b)
	if err != nil || s.digest(o, records) != o.Digest {
		return false, s.foreignObjectError(o)
	}
	return true, nil
}

type malformedRecord struct {
	Shard        string    `json:"shard"`
	Number       Number    `json:"number"`
	Arrival      time.Time `json:"arrival"`
	PartitionKey string    `json:"partition_key"`
	Why          string    `json:"why"`
	Raw          []byte    `json:"raw"`
}

// saveMalformed must run before the worker writes the intent for the record's range.
func (s *shard) saveMalformed(ctx context.Context, e *Record) error {
	b := encodeJSON(malformedRecord{s.ID, e.Number, e.Arrival, e.PartitionKey, e.Malformed.Error(), e.Raw})
	ref := s.object(s.malformedPrefix() + s.ID + "-" + string(e.Number) + ".json")
	w := cell.Write{Pace: s.pace, Trust: cell.Trust{Conflict: true, Refusal: true}}
	w.Send = func(ctx context.Context) error {
		o := bucket.Object{Body: bytes.NewReader(b), Size: int64(len(b)), ContentType: "application/json", Metadata: map[string]string{metaArchive: s.claim.ID}}
		_, err := s.Store.Put(ctx, ref, o, bucket.Condition{IfAbsent: true})
		return err
	}
	w.Look = func(_ context.Context, answer error) (cell.Outcome, error) {
		if errors.Is(answer, bucket.ErrPrecondition) { // another worker stored the same content
			return cell.Landed, nil
		}
		return cell.Unclear, nil
	}
	_, err := w.Run(ctx)
	return err
}
