package linearizable

import "fmt"

// Op is what a call was to a register, as far as its caller knows. The model is
// this: each kind of operation says on which values it can have acted, and what
// it left.
//
// A value is a name, "" that there is nothing. Whoever writes gives each value a
// name of its own, so that no two writes look alike.
type Op struct {
	text string
	open bool // it has no end
	// step returns what the operation leaves where it finds now, or that it
	// cannot have found that.
	step func(now string) (next string, ok bool)
}

// Read saw the value.
func Read(value string) Op {
	return Op{text: "read " + valueName(value), step: func(now string) (string, bool) { return now, now == value }}
}

// Applied replaced expect by next.
func Applied(expect, next string) Op {
	return Op{text: swap(expect, next) + ": applied", step: func(now string) (string, bool) { return next, now == expect }}
}

// Gone removed expect, or found that there was nothing any more.
func Gone(expect string) Op {
	return Op{text: swap(expect, "") + ": gone", step: func(now string) (string, bool) { return "", now == expect || now == "" }}
}

// Refused did not replace expect by next, because it found another value: one
// that is not its own, either.
func Refused(expect, next, by string) Op {
	return Op{text: swap(expect, next) + ": refused by " + valueName(by), step: func(now string) (string, bool) {
		return now, now == by && now != expect && (now != next || now == "")
	}}
}

// RefusedBySome is Refused by a value that the caller was not told.
func RefusedBySome(expect, next string) Op {
	return Op{text: swap(expect, next) + ": refused", step: func(now string) (string, bool) { return now, now != expect }}
}

// Removed left nothing, whatever was there.
func Removed() Op {
	return Op{text: "remove", step: func(string) (string, bool) { return "", true }}
}

// Unknown may replace expect by next at any time after the call began, or never.
// What never takes effect comes after everything else, where nobody looks.
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

// over is no value: nothing reads any more.
const ended = "the end"

// end comes after all calls but those without an end.
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
