package main

import (
	"bytes"
	"fmt"
	"go/format"
	"slices"
	"strings"

	"gopkg.in/yaml.v3"
)

// schema is the part of JSON Schema that openapi.yaml uses.
type schema struct {
	Ref         string    `yaml:"$ref"`
	Type        yaml.Node `yaml:"type"` // a string, or a list with "null"
	Format      string    `yaml:"format"`
	Description string    `yaml:"description"`
	Enum        []string  `yaml:"enum"`
	Required    []string  `yaml:"required"`
	Default     any       `yaml:"default"`
	Items       *schema   `yaml:"items"`
	Properties  yaml.Node `yaml:"properties"` // kept as a node, for the order
	Additional  yaml.Node `yaml:"additionalProperties"`
}

type property struct {
	name   string
	schema schema
}

// generate returns the Go file. The envelopes (…Answer) and the external format HAR get no type:
// the client unwraps the former and passes the latter on unchanged.
func generate(document []byte) ([]byte, error) {
	var doc struct {
		Components struct {
			Schemas yaml.Node `yaml:"schemas"`
		} `yaml:"components"`
	}
	if err := yaml.Unmarshal(document, &doc); err != nil {
		return nil, err
	}
	schemas, err := pairs(&doc.Components.Schemas)
	if err != nil {
		return nil, err
	}
	var out bytes.Buffer
	out.WriteString("// Code generated from openapi.yaml by internal/gen. DO NOT EDIT.\n\npackage client\n\nimport \"time\"\n")
	for _, p := range schemas {
		// The envelope is unwrapped, and Error has a type of its own.
		if strings.HasSuffix(p.name, "Answer") || strings.HasSuffix(p.name, "List") || p.name == "HAR" || p.name == "Error" {
			continue
		}
		if err := declare(&out, p.name, &p.schema); err != nil {
			return nil, fmt.Errorf("schema %s: %w", p.name, err)
		}
	}
	formatted, err := format.Source(out.Bytes())
	if err != nil {
		return nil, fmt.Errorf("%w in\n%s", err, out.Bytes())
	}
	return formatted, nil
}

// pairs reads a mapping of schemas in the order of the document.
func pairs(n *yaml.Node) ([]property, error) {
	var all []property
	for i := 0; i+1 < len(n.Content); i += 2 {
		p := property{name: n.Content[i].Value}
		if err := n.Content[i+1].Decode(&p.schema); err != nil {
			return nil, fmt.Errorf("%s: %w", p.name, err)
		}
		all = append(all, p)
	}
	return all, nil
}

func declare(out *bytes.Buffer, name string, s *schema) error {
	comment(out, "", name, s.Description)
	kind, _ := s.kind()
	switch {
	case kind == "string" && len(s.Enum) > 0:
		fmt.Fprintf(out, "type %s string\n\n// Values of %s.\nconst (\n", name, name)
		for _, v := range s.Enum {
			if v != "" {
				fmt.Fprintf(out, "\t%s%s %s = %q\n", name, goName(v), name, v)
			}
		}
		out.WriteString(")\n")
		return nil
	case kind == "object" && s.Additional.Kind == yaml.MappingNode:
		goType, err := s.goType()
		fmt.Fprintf(out, "type %s %s\n", name, goType)
		return err
	case kind != "object":
		return fmt.Errorf("type %q has no Go form here", kind)
	}
	properties, err := pairs(&s.Properties)
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "type %s struct {\n", name)
	for _, p := range properties {
		goType, err := p.schema.goType()
		if err != nil {
			return fmt.Errorf("property %s: %w", p.name, err)
		}
		tag := p.name
		if !slices.Contains(s.Required, p.name) {
			tag += ",omitempty"
			if pointer(name, &p.schema) && (name == "TunnelUpdate" || !strings.HasPrefix(goType, "[]")) && goType != "any" {
				goType = "*" + goType
			}
		}
		if p.schema.Description != "" {
			comment(out, "\t", "", p.schema.Description)
		}
		fmt.Fprintf(out, "\t%s %s `json:%q`\n", goName(p.name), goType, tag)
	}
	out.WriteString("}\n")
	return nil
}

// pointer reports whether an optional property must distinguish absence from zero: in requests that
// change something, if the default is not zero, and for objects. For a list that is only the case
// in TunnelUpdate, where an empty list removes all entries.
func pointer(owner string, s *schema) bool {
	ref := strings.TrimPrefix(s.Ref, refPrefix)
	return owner == "TunnelUpdate" || owner == "Replay" || s.Default == true ||
		ref == "Message" || ref == "ConfigError"
}

const refPrefix = "#/components/schemas/"

// kind returns the schema's type, and whether null is allowed too.
func (s *schema) kind() (kind string, null bool) {
	if s.Type.Kind != yaml.SequenceNode {
		return s.Type.Value, false
	}
	for _, n := range s.Type.Content {
		if n.Value == "null" {
			null = true
		} else {
			kind = n.Value
		}
	}
	return kind, null
}

func (s *schema) goType() (string, error) {
	if s.Ref != "" {
		return strings.TrimPrefix(s.Ref, refPrefix), nil
	}
	kind, null := s.kind()
	star := ""
	if null {
		star = "*"
	}
	switch kind {
	case "":
		return "any", nil
	case "string":
		if s.Format == "date-time" {
			return star + "time.Time", nil
		}
		return star + "string", nil
	case "boolean":
		return star + "bool", nil
	case "number":
		return star + "float64", nil
	case "integer":
		if s.Format == "int64" {
			return star + "int64", nil
		}
		return star + "int", nil
	case "array":
		item, err := s.Items.goType()
		return "[]" + item, err
	case "object":
		if s.Additional.Value == "true" {
			return "map[string]any", nil
		}
		if s.Additional.Kind == yaml.MappingNode {
			var values schema
			if err := s.Additional.Decode(&values); err != nil {
				return "", err
			}
			value, err := values.goType()
			return "map[string]" + value, err
		}
	}
	return "", fmt.Errorf("type %q has no Go form here", kind)
}

// comment writes a doc comment; that of a declaration begins with its name.
func comment(out *bytes.Buffer, indent, name, text string) {
	text = strings.TrimSpace(text)
	if name != "" {
		out.WriteString("\n")
		if text == "" {
			text = "is described in openapi.yaml."
		}
		text = name + ": " + text
	}
	for line := range strings.SplitSeq(text, "\n") {
		fmt.Fprintf(out, "%s// %s\n", indent, strings.TrimRight(line, " "))
	}
}

var spelled = map[string]string{
	"id": "ID", "url": "URL", "ip": "IP", "os": "OS", "pid": "PID", "ms": "Millis", "rtt": "RTT",
	"http": "HTTP", "https": "HTTPS", "tls": "TLS", "tcp": "TCP", "udp": "UDP", "json": "JSON",
	"curl": "Curl", "dtls": "DTLS",
}

// goName turns a name on the wire into a Go name.
func goName(name string) string {
	var out strings.Builder
	for part := range strings.SplitSeq(name, "_") {
		if s, ok := spelled[part]; ok {
			out.WriteString(s)
		} else if part != "" {
			out.WriteString(strings.ToUpper(part[:1]) + part[1:])
		}
	}
	return out.String()
}
