package housetest

import (
	"cmp"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/dlclark/regexp2/v2"
)

const (
	maxMarkers   = 5 // per 10,000 words of comments, of test comments, of program texts, and of docs
	maxQuestions = 8 // per 1,000 comments of declarations

	// Parts of patterns with lookarounds, which package regexp lacks.
	auxiliary   = `(?:is|are|was|were|has|have|had|it|they|he|does|do|did|may|must|can|cannot|could|will|would|should)`
	finite      = `(?:is|are|was|were|has|have|had|may|might|must|can|cannot|could|will|would|should|does|do|did)`
	verb        = `(?-i:` + finite + `|says?|takes?|needs?|waits?|costs|sleeps|stands?|stays?|knows?|happens|exists?|comes?|goes|gets?|shares?|list|count)`
	plainWord   = `(?:(?!(?:that|this|which|who|whose|to|as|than|what|how|where|when|if|while|because|it|we|you|they|he|she)\b)[\w'/.-]+ )`
	preposition = `(?:of|for|to|by|from|with|than|as|on|about)`
	determiner  = `(?:an?|the|each|every|one|another|no|this|that|its|such an?)`
	question    = `(?:what|whether|how|who|whom|whose|which|where|when|why)\b`
)

// marker is a phrase that readers stumble over, with a sentence that has it and one that only resembles it.
type marker struct{ pattern, hit, miss string }

var markers = []marker{
	{`\btold\b(?! otherwise)|\b(?:tells?|telling) of\b`, "The worker is told of it.", "Do so unless told otherwise."},
	{`\b(?!(?-i:NoBody))(?:nobody|somebody|anybody)\b`, "Nobody waits.", "The body is http.NoBody."},
	{`\bwho(?:so)?ever\b|\bwhomever\b`, "Whoever comes waits.", "The worker that comes waits."},
	{`^whatever\b(?! reason)|\bwhatever (?:is|was|has|had|may|becomes?|comes|else)\b`, "It removes whatever is there.", "For whatever reason."},
	{`(?<!next )(?<!last )(?<!each )(?<!the )(?<!other )\bone's\b|\b(?:him|her)self\b`, "One's own write is known.", "The last one's duration."},
	{`\bthose who\b|^(?:and |but )?those (?:that|which)\b|(?:^|[:;] )(?:an? |every |each )?ones? (?:that|who|which|whose|of which)\b`,
		"It ends; one that waits goes first.", "It skips those that failed."},
	{`^who (?!am\b|is (?:this|it) for|should|knows\b)|(?:[:;] |\b` + preposition + ` )who\b`, "It waits for who comes.", "It knows who leads."},
	{`(?<![./])\b(?:go|goes|went|gone) on\b(?! (?:the|a|an|top|disk|to|its|this|that|each|every)\b)`, "It goes on where it was.", "It must go on the wire."},
	{`(?<!take )(?<!takes )(?<!taking )(?<!took )(?<!have )(?<!having )\b` + determiner +
		` (?:next |first |second |last )?look\b(?!-| and feel| like| up)|\b(?:two|more|of|between|few) looks\b`, "After a look it ends.", "Take a look at it."},
	{`^what ` + auxiliary + ` (?=\S+ \S)`, "What has changed is left alone.", "See what is there."},
	{`^(?-i:Of)\b(?! course| note| particular)`, "Of one that is gone it says nothing.", "Of course it does."},
	{`\bbe it\b`, "A store, be it slow, is asked.", "It may be its own."},
	{`(?<!However)(?<!example)(?<!instance)(?<!ypically)(?<!otably)(?<!tunately)(?<! or)(?<! and), for ` +
		`(?:(?:it|they|he|she|there|then|nothing|nobody|somebody|else|otherwise) (?!to\b)\w|(?:that|this|these|those) ` + verb +
		`\b|what [^.;:,]*\b` + finite + `\b[^.;:,]*\b` + finite + `\b|who [^.;:,]*\b` + finite +
		`\b|(?!example|instance|each|every)` + plainWord + `{1,8}?` + verb + `\b)`, "It stays, for no event was seen.", "Twice, for each of them."},
	{`(?<!are )(?<!is )(?<!be )(?<!were )\ball the same(?=[.,;:)]| (?:it|they|and|for|if|when|as|by)\b|$)`, "It runs all the same.", "They are all the same."},
	{`\b(?:stand|stands|stood|standing) still\b`, "The worker stands still.", "It still stands."},
	{`\btroubles?\b`, "It has trouble.", "Troubleshooting"},
	{`\bheard\b(?! (?:back|from)\b)|\bhears? of\b`, "It uses what was heard of it.", "It has heard from the leader."},
	{`\bwhat (?:is|are|was|were) (?:still |yet |not )?to be\b|\b(?:is|are|was|were) (?:not |still |yet )?` +
		`to be (?:had|seen|told|found|looked|heard|expected)\b`, "Open what is to be written.", "It needs to be seen."},
	{`\b(?:is|are|be|been|being|was|were) (?:not |still |only )?waited for\b`, "It is waited for.", "It waited for it."},
	{`\b(?:give|gives|giving|gave|given)(?: (?:it|them|that|this|its \w+|the \w+|an? \w+))? back\b`, "It gives the lock back.", "It gives the lock."},
	{`\banew\b`, "It comes anew.", "It comes again."},
	{`\bwhat (?!an? )(?:\S+ ){1,4}?(?:make|makes|made) of\b|\b(?:make|makes|made) (?:nothing|something|anything|little|much) of (?:it|them|this|that)\b`,
		"It makes nothing of it.", "It is what a type is made of."},
	{`\b(?:says?|said|saying) (?:what|how|of|whether|nothing of|which|where|when|whose)\b`, "It says what it found.", "It says that it is ready."},
	{`\b(?:becomes?|became|become) of\b`, "It knows what became of the write.", "It becomes old."},
	{`\bfor ever\b|\bunder way\b|\bon (?:its|their) way\b`, "It would wait for ever.", "It would wait forever."},
}

var (
	matchers   = make([]*regexp2.Regexp, len(markers))
	questioned = regexp.MustCompile(`^(?:An? |The )?([A-Za-z_][\w.]*)(?:,? (?:also|only|then))? (?:(?:says?|tells?|shows?|knows?|told|said)(?: \w+){0,2}? ` +
		`(?:of |from |since |by |in |for |to |at |on )?` + question + `|(?:is|are|was|were) (?:of |from |since |by |in |for |to |at |on |as )?` + question + `)`)
	sentenceEnd   = regexp.MustCompile(`[.!?]["')\]*_’”]*\s+`)
	inlineCode    = regexp.MustCompile("`[^`]+`")
	otherSyntax   = regexp.MustCompile(`\b(?:SELECT|INSERT|UPDATE|DELETE|CREATE|WHERE|PRAGMA)\s|[{,]\s*"\w+":|</\w+>|:= |\bfunc\(|^\s*[{\[<^]|\{\{`)
	fence         = regexp.MustCompile("(?ms)^ *```.*?^ *```|<!--.*?-->|\\A---\n.*?\n---\n")
	paragraphs    = regexp.MustCompile(`\n\s*\n|\n\s*(?:[-*+•#]|\d+[.)]) +|\|`)
	exampleOutput = regexp.MustCompile(`(?s)\b(?:Unordered o|O)utput:.*`)
	codeBlock     = regexp.MustCompile(`(?m)^(?:\t|    ).*$`)
)

// english counts markers by kind of text.
type english struct {
	words, hits         map[string]int
	comments, questions int
	found               []string
}

// add counts the sentences of a text.
func (e *english) add(kind, place, text string) {
	for _, paragraph := range paragraphs.Split(text, -1) {
		paragraph = inlineCode.ReplaceAllString(strings.Join(strings.Fields(paragraph), " "), "CODE")
		for s := range slices.Values(strings.Split(sentenceEnd.ReplaceAllString(paragraph, "$0\n"), "\n")) {
			s = strings.TrimLeft(strings.TrimSpace(s), `"'([*_-–— `)
			e.words[kind] += len(strings.Fields(s))
			for i, m := range matchers {
				if found, _ := m.MatchString(s); found && (markers[i].pattern[0] != '^' || !strings.HasSuffix(s, "?")) {
					e.hits[kind]++
					e.found = append(e.found, place+": "+s)
				}
			}
		}
	}
}

// file counts the comments of a Go file, and its strings if it is not a test.
func (e *english) file(files *token.FileSet, f *ast.File, name string) {
	comments, place := "comments", func(n ast.Node) string { return files.Position(n.Pos()).String() }
	if strings.HasSuffix(name, "_test.go") {
		comments = "test comments"
	}
	for _, group := range f.Comments {
		e.add(comments, place(group), codeBlock.ReplaceAllString(exampleOutput.ReplaceAllString(group.Text(), ""), "\n"))
	}
	ast.Inspect(f, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.FuncDecl:
			e.declared(place(n), n.Doc, n.Name)
		case *ast.Field:
			e.declared(place(n), n.Doc, n.Names...)
		case *ast.GenDecl:
			for _, spec := range n.Specs {
				switch spec := spec.(type) {
				case *ast.TypeSpec:
					e.declared(place(spec), cmp.Or(spec.Doc, n.Doc), spec.Name)
				case *ast.ValueSpec:
					e.declared(place(spec), cmp.Or(spec.Doc, n.Doc), spec.Names...)
				}
			}
		case *ast.BasicLit:
			if text, err := strconv.Unquote(n.Value); err == nil && n.Kind == token.STRING && comments == "comments" &&
				len(strings.Fields(text)) >= 4 && !otherSyntax.MatchString(text) {
				e.add("program texts", place(n), text)
			}
		}
		return true
	})
}

// declared counts the comment of a declaration, and whether it defines a name by an
// indirect question ("x says how …").
func (e *english) declared(place string, doc *ast.CommentGroup, names ...*ast.Ident) {
	if doc == nil {
		return
	}
	e.comments++
	m := questioned.FindStringSubmatch(strings.Join(strings.Fields(doc.Text()), " "))
	if m != nil && slices.ContainsFunc(names, func(n *ast.Ident) bool { return n.Name == m[1] }) {
		e.questions++
		e.found = append(e.found, place+": "+m[0])
	}
}

// TestEnglish finds turns of phrase that readers stumble over.
func TestEnglish(t *testing.T) {
	for i, m := range markers {
		matchers[i] = regexp2.MustCompile(m.pattern, regexp2.IgnoreCase)
		for text, want := range map[string]bool{m.hit: true, m.miss: false} {
			if got, err := matchers[i].MatchString(text); err != nil || got != want {
				t.Errorf("%q matches %q: %v, %v; want %v", m.pattern, text, got, err, want)
			}
		}
	}
	t.Chdir("../..")
	e := &english{words: map[string]int{}, hits: map[string]int{}}
	files := token.NewFileSet()
	err := filepath.WalkDir(".", func(name string, d fs.DirEntry, err error) error {
		switch base := d.Name(); {
		case err != nil:
			return err
		case d.IsDir() && (base == "testdata" || len(base) > 1 && base[0] == '.'):
			return fs.SkipDir
		case strings.HasSuffix(base, ".go"):
			f, err := parser.ParseFile(files, name, nil, parser.ParseComments|parser.SkipObjectResolution)
			if err == nil && !ast.IsGenerated(f) {
				e.file(files, f, name)
			}
			return err
		case strings.HasSuffix(base, ".md") && base != "CHANGELOG.md":
			text, err := os.ReadFile(name)
			e.add("docs", name, fence.ReplaceAllString(string(text), "\n\n"))
			return err
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for kind, words := range e.words {
		if e.hits[kind]*10_000 > maxMarkers*words {
			t.Errorf("%s: %d markers in %d words, more than %d per 10,000", kind, e.hits[kind], words, maxMarkers)
		}
	}
	if e.questions*1_000 > maxQuestions*e.comments {
		t.Errorf("%d of %d comments of declarations are indirect questions, more than %d per 1,000", e.questions, e.comments, maxQuestions)
	}
	t.Log(strings.Join(e.found, "\n"))
}
