package config

import "bytes"

// maxDepth bounds the nesting of collections within a line or within brackets.
const maxDepth = 100

// depth returns an upper bound of the nesting within a line or within brackets. The parser
// recurses into collections, and its memory grows with the square of the depth. depth ignores
// nesting by indentation, which the size of the file bounds.
func depth(raw []byte) int {
	deepest, brackets := 0, 0
	for line := range bytes.Lines(raw) {
		deepest = max(deepest, entryMarks(line))
		for _, b := range line {
			switch b {
			case '[', '{':
				brackets++
				deepest = max(deepest, brackets)
			case ']', '}':
				brackets = max(brackets-1, 0)
			}
		}
	}
	return deepest
}

// entryMarks counts the entry marks at the beginning of a line. Each mark opens a collection:
// "- - ? x" has three marks.
func entryMarks(line []byte) int {
	marks := 0
	for i, b := range line {
		switch b {
		case ' ', '\t':
		case '-', '?', ':':
			if i+1 < len(line) && line[i+1] > ' ' {
				return marks
			}
			marks++
		default:
			return marks
		}
	}
	return marks
}
