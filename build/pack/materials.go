package main

import (
	"bytes"
	"debug/buildinfo"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// component is a part of the program, in CycloneDX's format.
type component struct {
	Type    string `json:"type"`
	Ref     string `json:"bom-ref,omitempty"`
	Name    string `json:"name"`
	Version string `json:"version,omitempty"`
	URL     string `json:"purl,omitempty"`
	Hashes  []hash `json:"hashes,omitempty"`
}

type hash struct {
	Algorithm string `json:"alg"`
	Content   string `json:"content"`
}

// materials writes the bill of materials: each module in the program, as recorded in the program
// itself (CycloneDX 1.6).
func (p *packer) materials() error {
	info, err := buildinfo.ReadFile(p.exe("linux", p.arches[0]))
	if err != nil {
		return fmt.Errorf("read what is in the program: %w", err)
	}
	components := []component{{Type: "library", Ref: "go", Name: "std", Version: strings.TrimPrefix(info.GoVersion, "go"), URL: "pkg:golang/std@" + strings.TrimPrefix(info.GoVersion, "go")}}
	for _, m := range info.Deps {
		if m.Replace != nil {
			m = m.Replace
		}
		purl := "pkg:golang/" + m.Path + "@" + m.Version
		components = append(components, component{Type: "library", Ref: purl, Name: m.Path, Version: m.Version, URL: purl})
	}
	document := map[string]any{
		"bomFormat":   "CycloneDX",
		"specVersion": "1.6",
		"version":     1,
		"metadata": map[string]any{
			"timestamp": p.release.Time.Format(time.RFC3339),
			"component": component{Type: "application", Ref: "adit", Name: "adit", Version: p.release.Version},
		},
		"components": components,
	}
	var text bytes.Buffer
	encoder := json.NewEncoder(&text)
	encoder.SetIndent("", "  ")
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(document); err != nil {
		return err
	}
	name := "adit-" + p.release.Version + ".cdx.json"
	p.add(name)
	return os.WriteFile(filepath.Join(p.out, name), text.Bytes(), 0o644)
}
