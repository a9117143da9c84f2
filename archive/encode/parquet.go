package encode

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"iter"
	"time"

	"github.com/parquet-go/parquet-go"

	"github.com/pawlhq/pawl/archive"
)

const (
	groupBytes = 32 << 20 // before compression
	groupRows  = 64       // rows that are read or written together
	maxParquet = 1 << 30
)

type tableRow struct {
	Shard        string  `parquet:"shard_id,dict"`
	Number       string  `parquet:"sequence_number"`
	Sub          *int32  `parquet:"sub_sequence_number,optional"`
	PartitionKey string  `parquet:"partition_key"`
	HashKey      *string `parquet:"explicit_hash_key,optional"`
	Arrival      int64   `parquet:"arrival,timestamp(millisecond)"`
	Data         []byte  `parquet:"data"`
	Malformed    *string `parquet:"malformed,optional"`
}

var schema = parquet.SchemaOf(tableRow{})

func writeParquet(w io.Writer, compression string, rows iter.Seq2[row, error]) error {
	options := []parquet.WriterOption{schema, parquet.KeyValueMetadata(checksumKey, zeroChecksum)}
	switch compression {
	case "gz":
		options = append(options, parquet.Compression(&parquet.Gzip))
	case "zst":
		options = append(options, parquet.Compression(&parquet.Zstd))
	}
	file := &checksumWriter{w: w, h: sha256.New()}
	out := parquet.NewGenericWriter[tableRow](file, options...)
	buf, size := make([]tableRow, 0, groupRows), 0
	write := func() error {
		_, err := out.Write(buf)
		buf = buf[:0]
		if err == nil && size >= groupBytes {
			size, err = 0, out.Flush()
		}
		return err
	}
	for r, err := range rows {
		if err != nil {
			return err
		}
		buf = append(buf, tableRowOf(r))
		size += len(r.data)
		if len(buf) == groupRows || size >= groupBytes {
			if err := write(); err != nil {
				return err
			}
		}
	}
	if err := write(); err != nil {
		return err
	}
	if err := out.Flush(); err != nil {
		return err
	}
	file.footer = new(bytes.Buffer)
	if err := out.Close(); err != nil {
		return err
	}
	return file.finish()
}

func tableRowOf(r row) tableRow {
	t := tableRow{
		Shard: r.shard, Number: string(r.number), PartitionKey: r.partitionKey,
		Arrival: r.arrival.UnixMilli(), Data: r.data,
	}
	if r.sub >= 0 {
		sub := int32(r.sub)
		t.Sub = &sub
	}
	if r.hashKey != "" {
		t.HashKey = &r.hashKey
	}
	if r.malformed != "" {
		t.Malformed = &r.malformed
	}
	return t
}

func (t *tableRow) row() row {
	r := row{
		shard: t.Shard, number: archive.Number(t.Number), sub: -1, partitionKey: t.PartitionKey,
		arrival: time.UnixMilli(t.Arrival).UTC(), data: t.Data,
	}
	if t.Sub != nil {
		r.sub = int(*t.Sub)
	}
	if t.HashKey != nil {
		r.hashKey = *t.HashKey
	}
	if t.Malformed != nil {
		r.malformed = *t.Malformed
	}
	return r
}

func readParquet(in io.Reader) iter.Seq2[row, error] {
	return func(yield func(row, error) bool) {
		t, err := openTable(in)
		if err != nil {
			yield(row{}, err)
			return
		}
		buf := make([]tableRow, groupRows)
		for {
			n, err := t.read(buf)
			for i := range buf[:n] {
				if !yield(buf[i].row(), nil) {
					return
				}
			}
			if err == io.EOF {
				return
			}
			if err != nil {
				yield(row{}, err)
				return
			}
			clear(buf)
		}
	}
}

// table reads a Parquet file. The library may panic if the file is invalid.
type table struct {
	rows *parquet.GenericReader[tableRow]
}

func openTable(in io.Reader) (t *table, err error) {
	defer recoverPanic(&err)
	b, err := io.ReadAll(io.LimitReader(in, maxParquet+1))
	switch {
	case err != nil:
		return nil, err
	case len(b) > maxParquet:
		return nil, fmt.Errorf("the file is larger than %d bytes", maxParquet)
	case !verifyChecksum(b):
		return nil, errors.New("the checksum is wrong or missing: another program may have written the file")
	}
	file, err := parquet.OpenFile(bytes.NewReader(b), int64(len(b)), parquet.SkipPageIndex(true), parquet.SkipBloomFilters(true))
	if err != nil {
		return nil, err
	}
	if !parquet.EqualNodes(file.Schema(), schema) {
		return nil, errors.New("the columns are not those of an archive")
	}
	return &table{parquet.NewGenericReader[tableRow](file)}, nil
}

func (t *table) read(buf []tableRow) (n int, err error) {
	defer recoverPanic(&err)
	n, err = t.rows.Read(buf)
	if n == 0 && err == nil {
		err = io.ErrNoProgress
	}
	return n, err
}

func recoverPanic(err *error) {
	if p := recover(); p != nil {
		*err = fmt.Errorf("the Parquet reader failed: %v", p)
	}
}
