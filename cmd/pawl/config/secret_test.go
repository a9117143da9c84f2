package config

import (
	"bytes"
	"encoding/json"
	"fmt"
	"log/slog"
	"strings"
	"testing"
)

func TestSecretNeverPrints(t *testing.T) {
	s := Secret{text: "hush"}
	w := struct{ Token Secret }{s}
	var out bytes.Buffer
	slog.New(slog.NewTextHandler(&out, nil)).Info("x", "secret", s, "hook", w, "pointer", &w)
	slog.New(slog.NewJSONHandler(&out, nil)).Info("x", "secret", s, "hook", w, "pointer", &w)
	for _, format := range []string{"%v", "%+v", "%#v", "%s", "%q"} {
		fmt.Fprintf(&out, format+"\n", s)
		fmt.Fprintf(&out, format+"\n", w)
		fmt.Fprintf(&out, format+"\n", &w)
	}
	b, err := json.Marshal(w)
	if err != nil {
		t.Fatal(err)
	}
	out.Write(b)
	if strings.Contains(out.String(), "hush") {
		t.Errorf("the secret was printed:\n%s", &out)
	}
	if !strings.Contains(out.String(), redacted) {
		t.Errorf("the output does not mark the secret as redacted:\n%s", &out)
	}
}
