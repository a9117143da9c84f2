package lock

import (
	"context"
	"encoding/json"
	"errors"
	"testing"
)

type counter struct {
	N    int     `json:"n"`
	Name string  `json:"name,omitempty"`
	Two  *[2]int `json:"two,omitempty"`
}

func TestUpdateJSON(t *testing.T) {
	inBubble(t, func(b *bubble) {
		u := b.user()
		add := func(n int) func(context.Context, *counter) error {
			return func(_ context.Context, c *counter) error {
				c.N += n
				return nil
			}
		}
		_, err := UpdateJSON(b.Context(), u.bucket, "k", add(1), UpdateConfig{Create: true})
		b.done(err)
		b.is(`{"n":1}` + "\n")
		b.put("k", ` { "n" : 41, "name" : "<&>" } `, map[string]string{"colour": "red"})
		done, err := UpdateJSON(b.Context(), u.bucket, "k", add(0), UpdateConfig{})
		b.done(err)
		if done.Written {
			b.Error("nothing has changed, and it was written")
		}
		b.is(` { "n" : 41, "name" : "<&>" } `)
		_, err = UpdateJSON(b.Context(), u.bucket, "k", add(1), UpdateConfig{})
		b.done(err)
		b.is(`{"n":42,"name":"<&>"}` + "\n")
		if m := b.metadata(); m["colour"] != "red" {
			b.Errorf("metadata %v", m)
		}
	})
}

// TestUpdateJSONLosesNothing: what a T cannot hold, and large numbers.
func TestUpdateJSONLosesNothing(t *testing.T) {
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
			_, err := UpdateJSON(b.Context(), u.bucket, "k", func(_ context.Context, c *counter) error {
				c.N++
				return nil
			}, UpdateConfig{})
			if !errors.Is(err, ErrConfig) {
				b.Errorf("%s: %v", name, err)
			}
			b.refused(err, ErrConfig, "s3://b/k", "nothing was written")
			u.untouched(content)
		}
		b.put("k", `{"big":9007199254740993,"n":1.50,"all":[1e400,"1",null,{"a":[]}]}`, nil)
		_, err := UpdateJSON(b.Context(), b.user().bucket, "k", func(_ context.Context, c *map[string]any) error {
			(*c)["n"] = json.Number("2")
			return nil
		}, UpdateConfig{})
		b.done(err)
		after := `{"all":[1e400,"1",null,{"a":[]}],"big":9007199254740993,"n":2}` + "\n"
		b.is(after)
		why := errors.New("no")
		_, err = UpdateJSON(b.Context(), b.user().bucket, "k", func(context.Context, *map[string]any) error { return why }, UpdateConfig{})
		b.refused(err, why)
		_, err = UpdateJSON(b.Context(), b.user().bucket, "k", func(_ context.Context, c *map[string]any) error {
			(*c)["f"] = func() {}
			return nil
		}, UpdateConfig{})
		if err == nil {
			b.Error("a func is no JSON")
		}
		b.is(after)
	})
}
