package config_test

import (
	"bytes"
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"
	"github.com/invopop/jsonschema"
	validator "github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/pawlhq/pawl/cmd/pawl/config"
	"github.com/pawlhq/pawl/cmd/pawl/parts"
	"github.com/pawlhq/pawl/event"
)

//go:generate go test -run TestSchema -update .

var update = flag.Bool("update", false, "write docs/pawl.schema.json")

const (
	schemaFile = "../../../docs/pawl.schema.json"
	fromEnv    = `\$\{[A-Za-z_][A-Za-z0-9_]*\}`
)

// TestSchema compares the stored schema with the types.
func TestSchema(t *testing.T) {
	want := schema(t)
	if *update {
		if err := os.WriteFile(schemaFile, want, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(schemaFile)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		t.Errorf("%s is stale: run go generate ./cmd/pawl/config", schemaFile)
	}
}

// TestExamples validates every example with the schema and loads it.
func TestExamples(t *testing.T) {
	compiler := validator.NewCompiler()
	compiled, err := compiler.Compile(schemaFile)
	if err != nil {
		t.Fatal(err)
	}
	samples, err := filepath.Glob("../../../docs/examples/*.yaml")
	if err != nil || len(samples) == 0 {
		t.Fatalf("no samples (%v)", err)
	}
	for _, name := range samples {
		t.Run(filepath.Base(name), func(t *testing.T) {
			raw, err := os.ReadFile(name)
			if err != nil {
				t.Fatal(err)
			}
			if err := validate(compiled, raw); err != nil {
				t.Error(err)
			}
			if _, err := parts.Table.Load(name, func(string) (string, bool) { return "value", true }); err != nil {
				t.Error(err)
			}
		})
	}
}

// TestSchemaRefuses lists mistakes that the schema must reject.
func TestSchemaRefuses(t *testing.T) {
	compiled, err := validator.NewCompiler().Compile(schemaFile)
	if err != nil {
		t.Fatal(err)
	}
	pipeline := func(s string) string { return "pipelines: [{name: a, match: {bucket: b}" + s + "}]" }
	for _, good := range []string{
		pipeline(", copy: {to: s3://c/x/}"),
		pipeline(`, image: {to: s3://c, width: "${WIDTH}", grayscale: "${GRAY}"}`),
		"archives: [{name: a, kinesis: {stream: s}, to: s3://b/p/}]",
		"files: {secret: 0123456789abcdef0123456789abcdef, to: s3://b/p/}",
	} {
		if err := validate(compiled, []byte(good)); err != nil {
			t.Errorf("%s: %v", good, err)
		}
	}
	for _, bad := range []string{
		"ledger: sqlite:x",
		"pipelines: []",
		"archives: []",
		"archives: [{name: a, to: s3://b/p/}]",
		pipeline(""),
		pipeline(", copy: {to: s3://c/x/}, http: {url: x}"),
		pipeline(", copy: {to: /x}"),
		pipeline(", copy: {to: s3://c/x}"),
		pipeline(", copy: {too: s3://c/}"),
		pipeline(", order: newest, copy: {to: s3://c/}"),
		pipeline(", image: {to: s3://c/, width: wide}"),
		pipeline(", copy: {to: s3://c/}") + "\nsweep_interval: 5",
		pipeline(", copy: {to: s3://c/}") + "\nconcurrency: 0",
		pipeline(", copy: {to: s3://c/}") + "\nledger: tape:x",
		pipeline(", copy: {to: s3://c/}") + "\nsources: [{sqs: {}}]",
	} {
		if err := validate(compiled, []byte(bad)); err == nil {
			t.Errorf("accepted: %s", bad)
		}
	}
}

func validate(s *validator.Schema, raw []byte) error {
	asJSON, err := yaml.YAMLToJSON(raw)
	if err != nil {
		return err
	}
	v, err := validator.UnmarshalJSON(bytes.NewReader(asJSON))
	if err != nil {
		return err
	}
	return s.Validate(v)
}

// schema generates the schema from the types and their comments.
func schema(t *testing.T) []byte {
	r := &jsonschema.Reflector{
		FieldNameTag:               "yaml",
		RequiredFromJSONSchemaTags: true,
		DoNotReference:             true,
		ExpandedStruct:             true,
		Anonymous:                  true,
		Mapper:                     mapType,
	}
	for _, dir := range []string{"config", "parts"} {
		if err := r.AddGoComments("github.com/pawlhq/pawl/cmd/pawl/"+dir, "../"+dir, jsonschema.WithFullComment()); err != nil {
			t.Fatal(err)
		}
	}
	delete(r.CommentMap, "github.com/pawlhq/pawl/cmd/pawl/config.File")
	s := r.Reflect(&config.File{})
	s.ID = "https://raw.githubusercontent.com/pawlhq/pawl/main/docs/pawl.schema.json"
	s.Title, s.Required = "pawl.yaml", nil
	for _, work := range []string{"pipelines", "archives", "files"} { // at least one of these
		s.AnyOf = append(s.AnyOf, &jsonschema.Schema{Required: []string{work}})
	}
	one := uint64(1)
	source := property(t, s, "sources").Items
	source.MinProperties, source.MaxProperties = &one, &one
	addKinds(r, source, parts.Table.Sources)
	pipeline := property(t, s, "pipelines").Items
	addKinds(r, pipeline, parts.Table.Actions)
	for _, action := range parts.Table.Actions {
		pipeline.OneOf = append(pipeline.OneOf, &jsonschema.Schema{Required: []string{action.Name}})
	}
	b, err := json.MarshalIndent(s, "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	return append(b, '\n')
}

// addKinds adds the kinds of a part to the schema of the enclosing map.
func addKinds(r *jsonschema.Reflector, to *jsonschema.Schema, kinds []config.Kind) {
	for _, k := range kinds {
		s := r.Reflect(k.Config)
		s.Version = ""
		to.Properties.Set(k.Name, s)
	}
}

func property(t *testing.T, s *jsonschema.Schema, name string) *jsonschema.Schema {
	p, ok := s.Properties.Get(name)
	if !ok {
		t.Fatalf("no property %s", name)
	}
	return p
}

// mapType returns the schema of a Go type that is a scalar in pawl.yaml. It returns nil for other
// types.
func mapType(t reflect.Type) *jsonschema.Schema {
	text := func(pattern string) *jsonschema.Schema {
		return &jsonschema.Schema{Type: "string", Pattern: pattern + "|" + fromEnv}
	}
	orEnv := func(kind string) *jsonschema.Schema {
		return &jsonschema.Schema{AnyOf: []*jsonschema.Schema{{Type: kind}, {Type: "string", Pattern: fromEnv}}}
	}
	switch reflect.Zero(t).Interface().(type) {
	case config.Duration:
		return text(`^([0-9]+(\.[0-9]+)?(ns|us|µs|ms|s|m|h))+$`)
	case config.Size:
		return text(`^[0-9]+(\.[0-9]+)? *([kKMGT]?i?B)?$`)
	case config.Location:
		return text(`^s3://[^/]+(/|/.*/)?$`)
	case config.Ledger:
		var forms []string
		for _, k := range parts.Table.Ledgers {
			if k.Form == k.Name {
				forms = append(forms, k.Name+":?")
			} else {
				forms = append(forms, k.Name+":.+")
			}
		}
		return text("^(" + strings.Join(forms, "|") + ")$")
	case config.Secret:
		return &jsonschema.Schema{Type: "string"}
	case config.Dialect:
		known := &jsonschema.Schema{Type: "string", Enum: []any{"auto"}}
		for _, d := range event.Dialects {
			known.Enum = append(known.Enum, string(d))
		}
		return known
	case int:
		positive := orEnv("integer")
		positive.AnyOf[0].Minimum = "1"
		return positive
	case bool:
		return orEnv("boolean")
	}
	return nil
}
