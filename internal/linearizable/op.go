package linearizable

import "fmt"

// Op is a call on a register, as far as the caller knows its result. An operation determines on
// which values it can have acted, and which value it left.
//
// A value is a name. The name "" means that there is no value. Each write uses a new name, so
// that no two writes look alike.
type Op struct {
	text string
	open bool // whether the call has no end
	// step returns the value that the register has after the operation, if its value was now.
	// ok is false if the operation cannot have acted on that value.
	step func(now string) (next string, ok bool)
}

// Read returns a read of the value.
func Read(value string) Op {
	return Op{text: "read " + valueName(value), step: func(now string) (string, bool) { return now, now == value }}
}

// Applied returns a write that replaced expect by next.
func Applied(expect, next string) Op {
	return Op{text: swap(expect, next) + ": applied", step: func(now string) (string, bool) { return next, now == expect }}
}

// Gone returns a removal that removed expect, or found no value.
func Gone(expect string) Op {
	return Op{text: swap(expect, "") + ": gone", step: func(now string) (string, bool) { return "", now == expect || now == "" }}
}

// Refused returns a write that did not replace expect by next, because the register had the
// value by, which another call wrote.
func Refused(expect, next, by string) Op {
	return Op{text: swap(expect, next) + ": refused by " + valueName(by), step: func(now string) (string, bool) {
		return now, now == by && now != expect && (now != next || now == "")
	}}
}

// RefusedBySome returns the same as Refused for a value that is unknown.
func RefusedBySome(expect, next string) Op {
	return Op{text: swap(expect, next) + ": refused", step: func(now string) (string, bool) { return now, now != expect }}
}

// Removed returns an unconditional removal.
func Removed() Op {
	return Op{text: "remove", step: func(string) (string, bool) { return "", true }}
}

// Unknown returns a write that replaced expect by next at any time after the call began, or
// never. In the order of calls, a write that never takes effect comes after all other calls, so
// that no call reads its value.
func Unknown(expect, next string) Op {
	return Op{
		text: swap(expect, next) + ": unknown", open: true,
		step: func(now string) (string, bool) {
			if now == ended {
				return ended, true
			}
			return next, now == expect
		},
	}
}

// ended is the value after all calls.
const ended = "the end"

// endOp comes after all calls that have an end.
var endOp = Op{text: "end", open: true, step: func(string) (string, bool) { return ended, true }}

func swap(expect, next string) string {
	return fmt.Sprintf("replace %s by %s", valueName(expect), valueName(next))
}

func valueName(value string) string {
	if value == "" {
		return "nothing"
	}
	return value
}
