package linearizable

import "fmt"

// Op is a call on a register, as far as the caller knows its result.
//
// A value is a name; "" means no value. Each write uses a new name, so that no two writes look alike.
type Op struct {
	text string
	open bool // the call has no end
	// step applies the operation to the value now. ok is false if it cannot have acted on that value.
	step func(now string) (next string, ok bool)
}

// Read returns a read of the value.
func Read(value string) Op {
	return Op{text: "read " + valueName(value), step: func(now string) (string, bool) { return now, now == value }}
}

// Applied returns a write that replaced expect with next.
func Applied(expect, next string) Op {
	return Op{text: swap(expect, next) + ": applied", step: func(now string) (string, bool) { return next, now == expect }}
}

// Gone returns a removal that removed expect, or found no value.
func Gone(expect string) Op {
	return Op{text: swap(expect, "") + ": gone", step: func(now string) (string, bool) { return "", now == expect || now == "" }}
}

// Refused returns a write that failed because another call had set the register to by.
func Refused(expect, next, by string) Op {
	return Op{text: swap(expect, next) + ": refused by " + valueName(by), step: func(now string) (string, bool) {
		return now, now == by && now != expect && (now != next || now == "")
	}}
}

// RefusedBySome is Refused if the value of the register is unknown.
func RefusedBySome(expect, next string) Op {
	return Op{text: swap(expect, next) + ": refused", step: func(now string) (string, bool) { return now, now != expect }}
}

// Removed returns an unconditional removal.
func Removed() Op {
	return Op{text: "remove", step: func(string) (string, bool) { return "", true }}
}

// Unknown returns a write without a known result. It may replace expect with next at any time after
// the call began, or never. A write that never happened comes after all other calls in the order.
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

const ended = "the end"

// endOp comes after all calls that have an end.
var endOp = Op{text: "end", open: true, step: func(string) (string, bool) { return ended, true }}

func swap(expect, next string) string {
	return fmt.Sprintf("replace %s with %s", valueName(expect), valueName(next))
}

func valueName(value string) string {
	if value == "" {
		return "nothing"
	}
	return value
}
