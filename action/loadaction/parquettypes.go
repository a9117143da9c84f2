package loadaction

import (
	"encoding/hex"
	"fmt"
	"math/big"
	"strconv"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/deprecated"
	"github.com/parquet-go/parquet-go/format"
)

type textFunc func(parquet.Value) (string, error)

func logicalType(t parquet.Type) any {
	if l := t.LogicalType(); l != nil {
		return l.Value
	}
	return nil
}

// Values without a logical type are bytes: hexadecimal for a bytea column, and text for any
// other.
func textOf(t parquet.Type, bytea bool) textFunc {
	switch l := logicalType(t).(type) {
	case *format.StringType, *format.EnumType, *format.JsonType:
		bytea = false
	case *format.DecimalType:
		return func(v parquet.Value) (string, error) { return decimal(v, int(l.Scale)) }
	case *format.DateType:
		return infallible(func(v parquet.Value) string { return time.Unix(int64(v.Int32())*86400, 0).UTC().Format(time.DateOnly) })
	case *format.TimestampType:
		layout := localLayout
		if l.IsAdjustedToUTC {
			layout = utcLayout
		}
		return infallible(func(v parquet.Value) string { return instant(v.Int64(), l.Unit).Format(layout) })
	case *format.TimeType:
		return infallible(func(v parquet.Value) string {
			n := v.Int64()
			if v.Kind() == parquet.Int32 {
				n = int64(v.Int32())
			}
			return instant(n, l.Unit).Format("15:04:05.999999999")
		})
	case *format.UUIDType:
		return infallible(func(v parquet.Value) string {
			id, _ := uuid.FromBytes(v.ByteArray()) // the server rejects other lengths than 16 bytes
			return id.String()
		})
	case *format.IntType:
		if !l.IsSigned {
			return infallible(unsigned)
		}
	}
	return infallible(func(v parquet.Value) string { return physicalText(v, bytea) })
}

const (
	localLayout = "2006-01-02T15:04:05.999999999"
	utcLayout   = localLayout + "Z"
)

func infallible(f func(parquet.Value) string) textFunc {
	return func(v parquet.Value) (string, error) { return f(v), nil }
}

func physicalText(v parquet.Value, bytea bool) string {
	switch v.Kind() {
	case parquet.ByteArray, parquet.FixedLenByteArray:
		if bytea {
			return `\x` + hex.EncodeToString(v.ByteArray())
		}
		return string(v.ByteArray())
	case parquet.Int96:
		return julian(v.Int96()).Format(utcLayout)
	}
	return v.String()
}

// An INT96 of Impala, Hive and Spark contains nanoseconds of the day and the Julian day.
func julian(v deprecated.Int96) time.Time {
	const day1970 = 2440588
	nanoseconds := int64(v[1])<<32 | int64(v[0])
	return time.Unix((int64(v[2])-day1970)*86400, nanoseconds).UTC()
}

func unsigned(v parquet.Value) string {
	if v.Kind() == parquet.Int32 {
		return strconv.FormatUint(uint64(uint32(v.Int32())), 10)
	}
	return strconv.FormatUint(uint64(v.Int64()), 10)
}

func instant(n int64, unit format.TimeUnit) time.Time {
	switch unit.Value.(type) {
	case *format.MilliSeconds:
		return time.UnixMilli(n).UTC()
	case *format.MicroSeconds:
		return time.UnixMicro(n).UTC()
	}
	return time.Unix(0, n).UTC()
}

const (
	// maxScale is the limit of a numeric column.
	maxScale = 1000
	// PostgreSQL has no larger numbers. The time to format one grows faster than its length.
	maxDecimalBytes = 64 << 10
)

// Integer columns reject a point and an exponent. Bytes are in big-endian two's complement.
func decimal(v parquet.Value, scale int) (string, error) {
	n := new(big.Int)
	switch v.Kind() {
	case parquet.Int32:
		n.SetInt64(int64(v.Int32()))
	case parquet.Int64:
		n.SetInt64(v.Int64())
	default:
		b := v.ByteArray()
		if len(b) > maxDecimalBytes {
			return "", fmt.Errorf("a decimal of %d bytes is too large: at most %d", len(b), maxDecimalBytes)
		}
		n.SetBytes(b)
		if len(b) > 0 && b[0]&0x80 != 0 {
			n.Sub(n, new(big.Int).Lsh(big.NewInt(1), uint(8*len(b))))
		}
	}
	if scale == 0 {
		return n.String(), nil
	}
	sign := strings.Repeat("-", max(-n.Sign(), 0))
	digits := fmt.Sprintf("%0*d", scale+1, n.Abs(n))
	point := len(digits) - scale
	return sign + digits[:point] + "." + digits[point:], nil
}
