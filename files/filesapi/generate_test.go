package filesapi_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"iter"
	"maps"
	"math"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/lestrrat-go/jwx/v3/jwt"
	"github.com/pb33f/libopenapi/datamodel/high/base"
	"pgregory.net/rapid"
)

// drawn is a request.
type drawn struct {
	op     *described
	method string
	in     map[string]string // parameters of the path, and entity
	query  [][2]string
	header http.Header
	body   []byte
	tree   any // of body, where it is JSON
	// fault says what is not as the document has it, or may not be; empty: nothing.
	fault string
	// lets: the token holds; covers: its scopes cover the entity.
	lets, covers bool
	forged       bool   // its cursor is none of its list
	sends        string // bytes of the upload that it begins
}

func (q *drawn) String() string {
	return fmt.Sprintf("%s %s %v %q %.200q %.600q (%s)", q.method, q.op.path, q.in, q.query, q.header, q.body, q.fault)
}

// mayBe reports that a request without a fault may be answered so: it succeeds, the
// file is not there or not in that state, or the quota is used up.
func (q *drawn) mayBe(status int) bool {
	_, one := q.in["id"]
	return status < 300 || status == http.StatusForbidden || status == http.StatusConflict || status == http.StatusNotFound && one
}

func keysOf[V any](m map[string]V) iter.Seq[string] { return maps.Keys(m) }

// build makes the request that is sent.
func (q *drawn) build(x *site) (*http.Request, error) {
	path := q.op.path
	for name, value := range q.in {
		path = strings.ReplaceAll(path, "{"+name+"}", url.PathEscape(value))
	}
	var query []string
	for _, p := range q.query {
		query = append(query, url.QueryEscape(p[0])+"="+url.QueryEscape(p[1]))
	}
	target := x.url + path
	if len(query) > 0 {
		target += "?" + strings.Join(query, "&")
	}
	r, err := http.NewRequestWithContext(x.t.Context(), q.method, target, bytes.NewReader(q.body))
	if err != nil {
		return nil, err
	}
	r.Header = q.header.Clone()
	for name, values := range r.Header {
		for i, v := range values {
			values[i] = strings.Trim(v, " \t") // as net/http sends it, and the validator must see it
			if strings.ContainsFunc(name+v, func(c rune) bool { return c < ' ' && c != '\t' || c == 0x7f }) {
				return nil, fmt.Errorf("header %q: %q", name, v)
			}
		}
	}
	return r, nil
}

// entities are few, so that requests meet.
var entities = []string{"e", "e", "e", "f", "album-7"}

// texts are the bytes that are uploaded.
var texts = []string{"", "hello", "a longer text, of which there may be several"}

// stranger has a token for an entity that has no files.
const stranger = "stranger"

// request draws a request as the document has it, and then may break it.
func (w *walk) request(op *described) *drawn {
	q := &drawn{op: op, method: op.method, in: map[string]string{}, header: http.Header{}, lets: true, covers: true}
	q.header.Set("Authorization", "Bearer "+tokens(w.site.t)["all"])
	for _, p := range op.params {
		required := p.Required != nil && *p.Required
		if !required && rapid.Bool().Draw(w.t, "without "+p.Name) {
			continue
		}
		v := w.param(p.Name, p.Schema.Schema())
		switch p.In {
		case "path":
			q.in[p.Name] = v
		case "query":
			q.query = append(q.query, [2]string{p.Name, v})
			if p.Name == "entity" {
				q.in["entity"] = v
			}
		case "header":
			q.header.Set(p.Name, v)
		}
	}
	w.cursor(q)
	if op.RequestBody != nil {
		w.body(q)
	}
	if rapid.Bool().Draw(w.t, "broken") {
		f := rapid.SampledFrom(faults).Draw(w.t, "fault")
		if op.OperationId == "listFiles" && len(w.pages) > 0 && rapid.Bool().Draw(w.t, "forged") {
			f = fault{"cursor", forgeCursor}
		}
		q.fault = f.name
		f.apply(w, q)
	}
	return q
}

// cursor takes the place of a list of its own, or none: any other is refused.
func (w *walk) cursor(q *drawn) {
	q.query = slices.DeleteFunc(q.query, func(p [2]string) bool { return p[0] == "after" })
	if len(w.pages) == 0 || q.op.OperationId != "listFiles" || rapid.Bool().Draw(w.t, "first page") {
		return
	}
	page := rapid.SampledFrom(w.pages).Draw(w.t, "page")
	q.in["entity"] = page.entity
	q.query = append(q.query, [2]string{"after", page.next})
}

// param draws the text of a parameter.
func (w *walk) param(name string, s *base.Schema) string {
	if name == "id" && len(w.known["fileId"]) > 0 && rapid.IntRange(0, 9).Draw(w.t, "unknown id") > 0 {
		return w.pick("fileId")
	}
	if name == "limit" && rapid.Bool().Draw(w.t, "short") { // for lists of several pages
		return "1"
	}
	return fmt.Sprint(w.value(name, s))
}

// body draws a body, of the first type that the document has.
func (w *walk) body(q *drawn) {
	media := q.op.RequestBody.Content.First()
	if media.Key() == "application/octet-stream" {
		q.header.Set("Content-Type", rapid.SampledFrom([]string{"text/plain", "image/png", "application/json"}).Draw(w.t, "type"))
		q.body = []byte(rapid.SampledFrom(texts[1:]).Draw(w.t, "bytes"))
		return
	}
	q.header.Set("Content-Type", media.Key())
	q.tree = w.value("", media.Value().Schema.Schema())
	if body, ok := q.tree.(map[string]any); ok && body["sha256"] != nil {
		q.sends = rapid.SampledFrom(texts).Draw(w.t, "bytes")
		sum := sha256.Sum256([]byte(q.sends))
		body["sha256"], body["size"], body["contentType"] = hex.EncodeToString(sum[:]), len(q.sends), "text/plain"
	}
	if body, ok := q.tree.(map[string]any); ok && body["parts"] != nil { // of as many bytes as the service takes: one part
		q.sends = rapid.SampledFrom(texts[1:]).Draw(w.t, "bytes")
		sum := sha256.Sum256([]byte(q.sends))
		body["parts"], body["size"], body["contentType"] = []string{hex.EncodeToString(sum[:])}, len(q.sends), "text/plain"
	}
	q.body = marshal(q.tree)
}

func marshal(v any) []byte {
	b, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return b
}

// value draws what a schema allows.
func (w *walk) value(name string, s *base.Schema) any {
	if name == "entity" {
		return rapid.SampledFrom(entities).Draw(w.t, name)
	}
	if len(s.Type) == 0 {
		return w.any(2)
	}
	switch kind := rapid.SampledFrom(s.Type).Draw(w.t, name+" type"); kind {
	case "object":
		return w.object(s)
	case "array":
		return rapid.SliceOfN(rapid.Custom(func(t *rapid.T) any {
			inner := *w
			inner.t = t
			return inner.value(name, s.Items.A.Schema())
		}), int(deref(s.MinItems, 0)), int(deref(s.MaxItems, 5))).Draw(w.t, name)
	case "integer":
		return rapid.Int64Range(int64(deref(s.Minimum, 0)), int64(deref(s.Maximum, 1<<40))).Draw(w.t, name)
	case "boolean":
		return rapid.Bool().Draw(w.t, name)
	case "null":
		return nil
	case "string":
		return w.text(name, s)
	default:
		panic("the generator does not know the type " + kind)
	}
}

func deref[T any](p *T, or T) T {
	if p == nil {
		return or
	}
	return *p
}

func (w *walk) text(name string, s *base.Schema) string {
	switch {
	case len(s.Enum) > 0:
		return rapid.SampledFrom(s.Enum).Draw(w.t, name).Value
	case s.Format == "uuid":
		return rapid.SampledFrom([]string{noSuch, uuid.Max.String(), uuid.Nil.String()}).Draw(w.t, name)
	case s.Pattern != "":
		return rapid.StringMatching(s.Pattern).Draw(w.t, name)
	}
	return rapid.StringN(int(deref(s.MinLength, 0)), int(deref(s.MaxLength, 50)), -1).Draw(w.t, name)
}

func (w *walk) object(s *base.Schema) any {
	out := map[string]any{}
	for name, p := range s.Properties.FromOldest() {
		if slices.Contains(s.Required, name) || rapid.Bool().Draw(w.t, "with "+name) {
			out[name] = w.value(name, p.Schema())
		}
	}
	return out
}

// any draws any JSON value that nests only so deep.
func (w *walk) any(depth int) any {
	switch n := rapid.IntRange(0, 7).Draw(w.t, "any"); {
	case n == 0:
		return nil
	case n == 1:
		return rapid.Bool().Draw(w.t, "bool")
	case n == 2:
		return json.RawMessage(rapid.SampledFrom(numbers).Draw(w.t, "number"))
	case n == 3 && depth > 0:
		return []any{w.any(depth - 1)}
	case n == 4 && depth > 0:
		return map[string]any{w.absurd(): w.any(depth - 1)}
	}
	return w.absurd()
}

// numbers are those at which decoders break. All fit a float64, or the validator
// could not read them.
var numbers = []string{
	"0", "-0", "-1", "1", "1.5", "1e3", "5.0", "1e308", "-1e308", "1e-400", "9007199254740993", "2147483648", "4294967296",
	"9223372036854775807", "9223372036854775808", "-9223372036854775809", "18446744073709551616", fmt.Sprint(math.MaxFloat64),
	strings.Repeat("9", 300), "1000", "1001",
}

// oddities are texts at which services break.
var oddities = []string{
	"", " ", ".", "..", "../..", "/", "%", "%00", "%2e%2e", "a/b", "a?b", "a#b", "*", "a b", "\x00", "a\x00b", "\n", "\r\nX: y", "\t", "\x7f", "\u00a0", "é", "\u0301", "\u202e", "😀",
	"\xff\xfe", "\xed\xa0\x80", "null", "true", "0", "-1", "1e3", "+5", "007", "0x10", "1_000", "٣", "NaN", "'", "\"", "' OR 1=1 --", "$(id)", "{{7*7}}", "<script>",
	"e,f", "e e", "E", "e\x00", strings.Repeat("a", 128), strings.Repeat("a", 129), strings.Repeat("a", 257), strings.Repeat("é", 128), strings.Repeat("a", 5000),
	"{" + noSuch + "}", "urn:uuid:" + noSuch, strings.ReplaceAll(noSuch, "-", ""), strings.ToUpper(noSuch), "__proto__", "constructor",
}

func (w *walk) absurd() string {
	if rapid.IntRange(0, 3).Draw(w.t, "random") == 0 {
		return rapid.String().Draw(w.t, "text")
	}
	return rapid.SampledFrom(oddities).Draw(w.t, "oddity")
}

var made map[string]string

// tokens are those that a client may have, by what they are.
func tokens(t *testing.T) map[string]string {
	if made == nil {
		long := func(j jwt.Token) error { return j.Set(jwt.ExpirationKey, time.Now().Add(100*time.Hour)) }
		unsigned := must(jwt.Sign(must(jwt.NewBuilder().Subject("ann").Expiration(time.Now().Add(time.Hour)).Claim("scope", "read:* write:*").Build()), jwt.WithInsecureNoSignature()))
		all := token(t, "read:* write:*", long)
		made = map[string]string{
			"all": all, "stranger": token(t, "read:"+stranger+" write:"+stranger, long), "none": token(t, "", long), "odd": token(t, "read: write: * :", long),
			"expired":  token(t, "read:* write:*", func(j jwt.Token) error { return j.Set(jwt.ExpirationKey, time.Now().Add(-time.Hour)) }),
			"unsigned": string(unsigned), "cut": all[:len(all)-2], "mixed": all[:40] + all[41:], "two": all + "." + all,
		}
	}
	return made
}
