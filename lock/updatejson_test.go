package lock

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"math"
	"math/big"
	"testing"
	"time"
)

type jsonCounter struct {
	N    int     `json:"n"`
	Name string  `json:"name,omitempty"`
	Two  *[2]int `json:"two,omitempty"`
}

func TestUpdateJSON(t *testing.T) {
	inBubble(t, func(b *bubble) {
		u := b.user()
		add := func(n int) func(context.Context, *jsonCounter) error {
			return func(_ context.Context, c *jsonCounter) error {
				c.N += n
				return nil
			}
		}
		_, err := UpdateJSON(b.Context(), u.bucket, "k", add(1), UpdateConfig{Create: true})
		b.noError(err)
		b.wantContent(`{"n":1}` + "\n")
		b.put("k", ` { "n" : 41, "name" : "<&>" } `, map[string]string{"colour": "red"})
		done, err := UpdateJSON(b.Context(), u.bucket, "k", add(0), UpdateConfig{})
		b.noError(err)
		if done.Written {
			b.Error("an unchanged object was written")
		}
		b.wantContent(` { "n" : 41, "name" : "<&>" } `)
		_, err = UpdateJSON(b.Context(), u.bucket, "k", add(1), UpdateConfig{})
		b.noError(err)
		b.wantContent(`{"n":42,"name":"<&>"}` + "\n")
		if m := b.metadata(); m["colour"] != "red" {
			b.Errorf("metadata %v", m)
		}
	})
}

func TestUpdateJSONRejectsLossyDecode(t *testing.T) {
	inBubble(t, func(b *bubble) {
		for name, content := range map[string]string{
			"a field it does not have": `{"n":1,"m":2}`,
			"another spelling":         `{"N":1}`,
			"two spellings":            `{"n":1,"N":2}`,
			"more than it has room":    `{"n":1,"two":[1,2,3]}`,
			"a name twice":             `{"n":1,"n":2}`,
			"two values":               `{"n":1}{"n":2}`,
			"another type":             `{"n":"1"}`,
			"no JSON":                  `n=1`,
			"nothing":                  ``,
		} {
			u := b.user()
			b.put("k", content, nil)
			_, err := UpdateJSON(b.Context(), u.bucket, "k", func(_ context.Context, c *jsonCounter) error {
				c.N++
				return nil
			}, UpdateConfig{})
			if !errors.Is(err, ErrConfig) {
				b.Errorf("%s: %v", name, err)
			}
			b.wantError(err, ErrConfig, "s3://b/k", "nothing was written")
			u.wantNoWrites(content)
		}
		b.put("k", `{"big":9007199254740993,"n":1.50,"all":[1e400,"1",null,{"a":[]}]}`, nil)
		_, err := UpdateJSON(b.Context(), b.user().bucket, "k", func(_ context.Context, c *map[string]any) error {
			(*c)["n"] = json.Number("2")
			return nil
		}, UpdateConfig{})
		b.noError(err)
		after := `{"all":[1e400,"1",null,{"a":[]}],"big":9007199254740993,"n":2}` + "\n"
		b.wantContent(after)
		why := errors.New("no")
		_, err = UpdateJSON(b.Context(), b.user().bucket, "k", func(context.Context, *map[string]any) error { return why }, UpdateConfig{})
		b.wantError(err, why)
		_, err = UpdateJSON(b.Context(), b.user().bucket, "k", func(_ context.Context, c *map[string]any) error {
			(*c)["f"] = func() {}
			return nil
		}, UpdateConfig{})
		if err == nil {
			b.Error("a func is no JSON")
		}
		b.wantContent(after)
	})
}

type pointerText struct{ text string }

func (p *pointerText) MarshalText() ([]byte, error) { return []byte(p.text), nil }

func (p *pointerText) UnmarshalText(b []byte) error {
	p.text = string(b)
	return nil
}

type octet byte

type allKinds struct {
	N       big.Int                `json:"n"`
	P       pointerText            `json:"p"`
	Map     map[string]pointerText `json:"map"`
	Bytes   []byte                 `json:"bytes"`
	Named   []octet                `json:"named"`
	Array   [4]byte                `json:"array"`
	Wait    time.Duration          `json:"wait"`
	When    time.Time              `json:"when"`
	Number  json.Number            `json:"number"`
	Zero    json.Number            `json:"zero"`
	Text    int64                  `json:"text,string"`
	Flag    bool                   `json:"flag,string"`
	None    []int                  `json:"none"`
	NoMap   map[string]int         `json:"nomap"`
	Any     any                    `json:"any"`
	Left    int                    `json:"left,omitempty"`
	Raw     json.RawMessage        `json:"raw"`
	Skipped string                 `json:"-"`
}

func TestUpdateJSONMatchesEncodingJSON(t *testing.T) {
	inBubble(t, func(b *bubble) {
		before := allKinds{
			P: pointerText{"precious"}, Map: map[string]pointerText{}, Bytes: []byte("bytes"), Named: []octet{1, 2}, Array: [4]byte{1, 2, 3, 4}, Wait: time.Minute,
			When: time.Date(2026, 1, 2, 3, 4, 5, 6, time.UTC), Number: "1.50", Text: 7, Any: []any{json.Number("1e400"), nil, "<&>"}, Raw: json.RawMessage("{}"),
		}
		before.N.SetInt64(5)
		text := func() string {
			var out bytes.Buffer
			e := json.NewEncoder(&out)
			e.SetEscapeHTML(false)
			b.noError(e.Encode(&before))
			return out.String()
		}
		b.put("k", text(), nil)
		add := func(n int64) Updated {
			done, err := UpdateJSON(b.Context(), b.user().bucket, "k", func(_ context.Context, m *allKinds) error {
				m.N.Add(&m.N, big.NewInt(n))
				return nil
			}, UpdateConfig{})
			b.noError(err)
			return done
		}
		if add(0).Written {
			b.Error("an unchanged object was written")
		}
		add(1)
		before.N.SetInt64(6)
		b.wantContent(text())
	})
}

func TestUpdateJSONOfNull(t *testing.T) {
	inBubble(t, func(b *bubble) {
		b.put("k", `{"n":null,"map":null,"number":null,"any":null,"wait":null}`, nil)
		_, err := UpdateJSON(b.Context(), b.user().bucket, "k", func(_ context.Context, m *allKinds) error {
			if m.Number != "" || m.Any != nil || m.Map != nil || m.N.Sign() != 0 || m.Wait != 0 {
				b.Errorf("change got %+v, want zero values", m)
			}
			return nil
		}, UpdateConfig{})
		b.noError(err)
	})
}

type writeOnly struct{ N int }

func (writeOnly) MarshalText() ([]byte, error)  { return []byte("text"), nil }
func (*writeOnly) UnmarshalText(b []byte) error { return errors.New("not " + string(b)) }

func TestUpdateJSONRejectsUnreadableValue(t *testing.T) {
	inBubble(t, func(b *bubble) {
		u := b.user()
		_, err := UpdateJSON(b.Context(), u.bucket, "k", func(context.Context, *writeOnly) error { return nil }, UpdateConfig{Create: true})
		b.wantError(err, ErrConfig, "s3://b/k", "read again", "nothing was written")
		u.wantNoWrites("")
		_, err = UpdateJSON(b.Context(), u.bucket, "k", func(_ context.Context, f *float64) error {
			*f = math.NaN()
			return nil
		}, UpdateConfig{Create: true})
		b.wantError(err, ErrConfig, "s3://b/k")
		u.wantNoWrites("")
	})
}
