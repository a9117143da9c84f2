package filesapi_test

import (
	"bytes"
	"encoding/json"
	"net/http"
	"slices"
	"strings"

	"pgregory.net/rapid"
)

// fault is a way to break a request. What it does may still be allowed.
type fault struct {
	name  string
	apply func(w *walk, q *drawn)
}

var faults = []fault{
	{"parameter", breakParam}, {"parameter", breakParam},
	{"member", breakMember}, {"member", breakMember}, {"member", breakMember},
	{"bytes", breakBytes}, {"content type", breakType}, {"token", breakToken}, {"token", breakToken}, {"header", addHeader}, {"query", addQuery},
	{"method", func(w *walk, q *drawn) {
		q.method = rapid.SampledFrom([]string{"PUT", "PATCH", "OPTIONS", "TRACE", "FOO", "get"}).Draw(w.t, "method")
	}},
	{"long body", func(w *walk, q *drawn) {
		q.body = bytes.Repeat([]byte(" "), rapid.SampledFrom([]int{500, 501, 16 << 10, 17 << 10, 100_000}).Draw(w.t, "length"))
	}},
}

// breakParam drops a parameter, sends it twice, or gives it an odd text.
func breakParam(w *walk, q *drawn) {
	if len(q.op.params) == 0 {
		breakToken(w, q)
		return
	}
	p := rapid.SampledFrom(q.op.params).Draw(w.t, "parameter")
	odd := w.absurd()
	switch way := rapid.IntRange(0, 3).Draw(w.t, "way"); {
	case p.In == "path":
		q.in[p.Name] = odd
	case p.In == "header" && way == 0:
		q.header.Add(p.Name, odd)
	case p.In == "header":
		q.header.Set(p.Name, odd)
	default:
		if way != 0 {
			q.query = slices.DeleteFunc(q.query, func(x [2]string) bool { return x[0] == p.Name })
		}
		if way != 1 {
			q.query = append(q.query, [2]string{p.Name, odd})
		}
	}
}

// forgeCursor takes the place of a list for another list, or changes it.
func forgeCursor(w *walk, q *drawn) {
	page := rapid.SampledFrom(w.pages).Draw(w.t, "page")
	cursor := []byte(page.next)
	q.in["entity"] = page.entity
	if rapid.Bool().Draw(w.t, "of another list") {
		q.in["entity"] += "x"
	} else {
		at := rapid.IntRange(0, len(cursor)-2).Draw(w.t, "at") // some bits of the last digit mean nothing
		cursor[at] = map[bool]byte{true: 'B', false: 'A'}[cursor[at] == 'A']
	}
	q.query, q.forged = [][2]string{{"after", string(cursor)}}, true
}

// breakMember changes something in a JSON body.
func breakMember(w *walk, q *drawn) {
	var places []map[string]any
	collect := func(v any) {
		if m, ok := v.(map[string]any); ok {
			places = append(places, m)
		}
	}
	collect(q.tree)
	each(q.tree, func(_ string, v any) { collect(v) })
	if len(places) == 0 {
		breakParam(w, q)
		return
	}
	q.sends = ""
	place := rapid.SampledFrom(places).Draw(w.t, "place")
	names := slices.Sorted(keysOf(place))
	if len(names) == 0 {
		names = []string{"x"}
	}
	name := rapid.SampledFrom(names).Draw(w.t, "member")
	switch rapid.IntRange(0, 5).Draw(w.t, "way") {
	case 0:
		delete(place, name)
	case 1:
		place[w.absurd()] = w.any(2)
	case 2:
		place[strings.ToUpper(name)] = place[name]
		delete(place, name)
	case 3:
		place[name] = []any{place[name]}
	case 4:
		place[name] = json.RawMessage(rapid.SampledFrom(append(numbers, "null")).Draw(w.t, "number"))
	default:
		place[name] = w.any(3)
	}
	q.body = marshal(q.tree)
}

// breakBytes changes the text of a body.
func breakBytes(w *walk, q *drawn) {
	at := rapid.IntRange(0, len(q.body)).Draw(w.t, "at")
	q.sends = ""
	switch rapid.IntRange(0, 6).Draw(w.t, "way") {
	case 0:
		q.body = q.body[:at]
	case 1:
		q.body = slices.Concat(q.body[:at], []byte(w.absurd()), q.body[at:])
	case 2:
		q.body = append(q.body, q.body...)
	case 3:
		q.body = append([]byte("\xef\xbb\xbf"), q.body...)
	case 4:
		q.body = []byte(strings.Repeat(rapid.SampledFrom([]string{"[", `{"query":`, `"`}).Draw(w.t, "open"), 1000))
	case 5: // a member twice
		if rest, ok := bytes.CutPrefix(q.body, []byte("{")); ok {
			q.body = slices.Concat([]byte(`{"entity":"f","query":"{ x }","entity":"e",`), rest)
		}
	default:
		q.body = marshal(w.any(3))
	}
}

func breakType(w *walk, q *drawn) {
	types := []string{
		"", "application/json; charset=utf-8", "Application/JSON", "application/json;", "application/json; charset", "application/jsonx", "text/json", "application/*", "*/*",
		"application/x-www-form-urlencoded", "multipart/form-data; boundary=x", "text/plain", "image/", "/", "x", ";", "a/b; c=\"", "a/b, c/d", strings.Repeat("a", 120) + "/bbbbbbbbb",
	}
	t := rapid.SampledFrom(append(types, w.absurd())).Draw(w.t, "type")
	if t == "" {
		q.header.Del("Content-Type")
		return
	}
	q.header.Set("Content-Type", t)
}

// breakToken takes a token that does not hold, or one that does not cover.
func breakToken(w *walk, q *drawn) {
	made := tokens(w.site.t)
	name := rapid.SampledFrom(append(slices.Sorted(keysOf(made)), "missing", "basic", "odd text", "twice")).Draw(w.t, "token")
	q.fault = "token: " + name
	switch name {
	case "missing":
		q.header.Del("Authorization")
	case "basic":
		q.header.Set("Authorization", "Basic "+made["all"])
	case "odd text":
		q.header.Set("Authorization", "Bearer "+w.absurd())
	case "twice":
		q.header["Authorization"] = []string{"Bearer " + made["cut"], "Bearer " + made["all"]}
	default:
		q.header.Set("Authorization", "Bearer "+made[name])
	}
	q.covers = name == "all"
	q.lets = slices.Contains([]string{"all", "stranger", "none", "odd"}, name)
}

// addHeader adds headers that change nothing, or what they say is refused.
func addHeader(w *walk, q *drawn) {
	name := rapid.SampledFrom([]string{
		"X-HTTP-Method-Override", "X-Forwarded-Host", "X-Original-URL", "Accept", "Accept-Encoding", "Content-Encoding", "If-Match", "If-None-Match", "Range", "Cookie", "Origin", "X-Request-Id",
	}).Draw(w.t, "header")
	q.header.Set(name, rapid.SampledFrom([]string{"DELETE", "gzip", "*", "bytes=0-1", "evil.example", http.MethodPut, w.absurd()}).Draw(w.t, "value"))
}

func addQuery(w *walk, q *drawn) {
	q.query = append(q.query, [2]string{w.absurd(), w.absurd()})
}
