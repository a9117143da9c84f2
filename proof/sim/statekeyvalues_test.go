package sim

import (
	"cmp"
	"fmt"
	"reflect"
	"slices"
	"time"

	"github.com/pawlhq/pawl/event"
	"github.com/pawlhq/pawl/ledger"
)

var (
	timeType     = reflect.TypeFor[time.Time]()
	nonceType    = reflect.TypeFor[ledger.Nonce]()
	eventType    = reflect.TypeFor[event.Event]()
	epochSeconds = reflect.ValueOf(epoch).Field(1).Int()
)

type pointer struct {
	address uintptr
	t       reflect.Type
}

func (c *stateKey) walk(v reflect.Value) {
	switch v.Kind() {
	case reflect.Bool:
		c.bool(v.Bool())
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		c.ints(int(v.Int()))
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		c.ints(int(v.Uint()))
	case reflect.String:
		c.string(v.String())
	case reflect.Slice, reflect.Array:
		c.list(v)
	case reflect.Map:
		c.table(v, asIs)
	case reflect.Pointer:
		c.pointer(v)
	case reflect.Interface:
		c.bool(v.IsNil())
		if !v.IsNil() {
			c.string(v.Elem().Type().String())
			c.walk(v.Elem())
		}
	case reflect.Struct:
		c.record(v)
	default:
		panic(fmt.Sprintf("a state with a %s", v.Type()))
	}
}

func (c *stateKey) list(v reflect.Value) {
	if v.Type() == nonceType {
		c.nonce(v)
		return
	}
	c.ints(v.Len())
	for i := range v.Len() {
		c.walk(v.Index(i))
	}
}

func (c *stateKey) nonce(v reflect.Value) {
	var n ledger.Nonce
	for i := range n {
		n[i] = byte(v.Index(i).Uint())
	}
	c.bool(n.IsZero())
	if !n.IsZero() {
		c.name(name{nonce: n})
	}
}

func (c *stateKey) table(v reflect.Value, m encoding) {
	c.ints(v.Len())
	if v.Len() == 0 {
		return
	}
	keys := v.MapKeys()
	if len(keys) > 1 {
		slices.SortFunc(keys, func(a, b reflect.Value) int {
			if m != asIs {
				return cmp.Compare(a.Uint(), b.Uint())
			}
			return cmp.Compare(fmt.Sprint(a), fmt.Sprint(b))
		})
	}
	for _, k := range keys {
		if m != asIs {
			c.number(m, k.Uint())
		} else {
			c.walk(k)
		}
		c.walk(v.MapIndex(k))
	}
}

// A pointer that was encoded before becomes a reference.
func (c *stateKey) pointer(v reflect.Value) {
	c.bool(v.IsNil())
	if v.IsNil() {
		return
	}
	switch v.Type().String() {
	case "*engine.entry", "*engine.delivery":
		p := pointer{v.Pointer(), v.Type()}
		n, known := c.seen[p]
		if !known {
			n = len(c.seen)
			c.seen[p] = n
		}
		c.ints(n)
		if known {
			return
		}
	}
	c.walk(v.Elem())
}

func (c *stateKey) record(v reflect.Value) {
	switch v.Type() {
	case timeType:
		c.time(v, asIs)
		return
	case eventType:
		c.string(v.FieldByName("Name").String()) // the rest follows from the user's changes
		return
	}
	fields, known := c.fieldCache[v.Type()]
	if !known {
		fields = fieldsOf(v.Type())
		c.fieldCache[v.Type()] = fields
	}
	for _, f := range fields {
		c.field(v.Field(f.index), f.encoding)
	}
}

func fieldsOf(t reflect.Type) []field {
	var fields []field
	for i := range t.NumField() {
		if m := fieldEncodings[nameOf(t)+"."+t.Field(i).Name]; m != omitted {
			fields = append(fields, field{i, m})
		}
	}
	return fields
}

// nameOf omits type parameters.
func nameOf(t reflect.Type) string {
	name := t.String()
	for i, r := range name {
		if r == '[' {
			return name[:i]
		}
	}
	return name
}

func (c *stateKey) field(v reflect.Value, m encoding) {
	switch m {
	case asIs:
		c.walk(v)
	case fence:
		c.fence(v.Int())
	case batch, delivery:
		if v.Kind() == reflect.Map {
			c.table(v, m)
		} else {
			c.number(m, v.Uint())
		}
	case isSet:
		c.bool(v.IsZero())
	case owner:
		c.owner(v.String())
	default:
		c.time(v, m)
	}
}

// A lease owner is none, an existing process, or an ended process.
func (c *stateKey) owner(who string) {
	i := slices.Index(c.nodeNames, who)
	c.ints(i)
	c.bool(who == "")
	if i < 0 && who != "" {
		c.name(name{text: who})
	}
}

func (c *stateKey) time(v reflect.Value, m encoding) {
	seconds, nanos := v.Field(1).Int(), v.Field(0).Uint()
	zero := seconds == 0 && nanos == 0
	c.bool(zero)
	if zero {
		return
	}
	at := time.Duration(seconds-epochSeconds)*time.Second + time.Duration(nanos)
	switch m {
	case fixedTime:
		c.ints(int(at))
	case leaseAge:
		c.ints(int(min(c.m.Now-at, smallPolicy.TTL)))
	case verifyTime:
		c.verifyRank(at)
		c.distance(at)
		c.bool(at == c.m.Now+smallPolicy.LateWriteWindow) // no later time can be requested now
	default:
		c.distance(at)
	}
}
