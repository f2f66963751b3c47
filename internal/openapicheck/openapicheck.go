// Package openapicheck checks responses of the local API against its OpenAPI document. It is used
// by the tests of the package that serves the API and by those of the built program. The caller
// supplies the document.
package openapicheck

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"gopkg.in/yaml.v3"
)

// Document is an OpenAPI 3.1 document, and a record of what was checked against it.
type Document struct {
	// Seen has an entry such as "GET /path 200" for each response that was checked.
	Seen map[string]bool

	root     map[string]any
	compiler *jsonschema.Compiler
}

// Load parses a document in YAML.
func Load(tb testing.TB, document []byte) *Document {
	tb.Helper()
	var root map[string]any
	if err := yaml.Unmarshal(document, &root); err != nil {
		tb.Fatal(err)
	}
	b, err := json.Marshal(root)
	if err != nil {
		tb.Fatal(err)
	}
	plain, err := jsonschema.UnmarshalJSON(bytes.NewReader(b))
	if err != nil {
		tb.Fatal(err)
	}
	c := jsonschema.NewCompiler()
	c.DefaultDraft(jsonschema.Draft2020) // the dialect of OpenAPI 3.1
	c.AssertFormat()
	if err := c.AddResource("https://adit.example/openapi.json", plain); err != nil {
		tb.Fatal(err)
	}
	return &Document{root: root, compiler: c, Seen: make(map[string]bool)}
}

// At follows names from the root, resolving references on the way; nil if there is nothing.
func (d *Document) At(tb testing.TB, names ...string) map[string]any {
	tb.Helper()
	node := d.root
	for _, name := range names {
		next, ok := node[name].(map[string]any)
		if !ok {
			return nil
		}
		if ref, ok := next["$ref"].(string); ok {
			next = d.At(tb, strings.Split(strings.TrimPrefix(ref, "#/"), "/")...)
		}
		node = next
	}
	return node
}

// Operations returns each method and path of the document, as "GET /path".
func (d *Document) Operations(tb testing.TB) []string {
	tb.Helper()
	var all []string
	for path := range d.At(tb, "paths") {
		for method, operation := range d.At(tb, "paths", path) {
			if o, ok := operation.(map[string]any); ok && o["responses"] != nil {
				all = append(all, strings.ToUpper(method)+" "+path)
			}
		}
	}
	return all
}

// Answers returns each response in the document, as "GET /path 200".
func (d *Document) Answers(tb testing.TB) []string {
	tb.Helper()
	var all []string
	for _, operation := range d.Operations(tb) {
		method, path, _ := strings.Cut(operation, " ")
		for status := range d.At(tb, "paths", path, strings.ToLower(method), "responses") {
			all = append(all, operation+" "+status)
		}
	}
	slices.Sort(all)
	return all
}

// Schema returns one of the schemas in components.
func (d *Document) Schema(tb testing.TB, name string) *jsonschema.Schema {
	tb.Helper()
	s, err := d.compiler.Compile("https://adit.example/openapi.json#/components/schemas/" + name)
	if err != nil {
		tb.Fatal(err)
	}
	return s
}

// Answer fails the test if a response does not match the document.
func (d *Document) Answer(tb testing.TB, path, method string, resp *http.Response, body []byte) {
	tb.Helper()
	status := fmt.Sprint(resp.StatusCode)
	d.Seen[method+" "+path+" "+status] = true
	answer := d.At(tb, "paths", path, strings.ToLower(method), "responses", status)
	switch resp.StatusCode {
	case http.StatusNotFound, http.StatusMethodNotAllowed, http.StatusInternalServerError:
		if answer == nil { // any path may say so
			answer = d.At(tb, "components", "responses", map[int]string{404: "NotFound", 405: "MethodNotAllowed", 500: "Internal"}[resp.StatusCode])
		}
	}
	if answer == nil {
		tb.Fatalf("%s %s: status %s is not in the document; body %s", method, path, status, body)
	}
	if got := resp.Header.Get("Cache-Control"); got != "no-store" {
		tb.Errorf("%s %s: got Cache-Control %q, want no-store", method, path, got)
	}
	if headers, ok := answer["headers"].(map[string]any); ok {
		for name := range headers {
			if resp.Header.Get(name) == "" && method != http.MethodHead {
				tb.Errorf("%s %s %s: header %s is missing", method, path, status, name)
			}
		}
	}
	content, ok := answer["content"].(map[string]any)
	if !ok || method == http.MethodHead {
		if len(body) > 0 {
			tb.Errorf("%s %s %s: got body %q, want none", method, path, status, body)
		}
		return
	}
	kind, _, _ := strings.Cut(resp.Header.Get("Content-Type"), ";")
	media, ok := content[kind].(map[string]any)
	if !ok {
		tb.Fatalf("%s %s %s: media type %q is not in the document", method, path, status, kind)
	}
	if kind != "application/json" {
		return
	}
	ref := media["schema"].(map[string]any)["$ref"].(string)
	d.validate(tb, strings.TrimPrefix(ref, "#/components/schemas/"), method+" "+path+" "+status, body)
}

// Event fails the test if an event of the stream does not match the document.
func (d *Document) Event(tb testing.TB, kind, data string) {
	tb.Helper()
	schemas := d.At(tb, "paths", "/api/v1/events", "get", "responses", "200", "content", "text/event-stream", "schema")["x-events"].(map[string]any)
	ref, ok := schemas[kind].(map[string]any)
	if !ok {
		tb.Errorf("event %s is not in the document", kind)
		return
	}
	d.validate(tb, strings.TrimPrefix(ref["$ref"].(string), "#/components/schemas/"), "event "+kind, []byte(data))
}

func (d *Document) validate(tb testing.TB, schema, what string, body []byte) {
	tb.Helper()
	value, err := jsonschema.UnmarshalJSON(bytes.NewReader(body))
	if err != nil {
		tb.Fatalf("%s: %v in %q", what, err, body)
	}
	if err := d.Schema(tb, schema).Validate(value); err != nil {
		tb.Errorf("%s: %v in %s", what, err, body)
	}
}
