package main

import (
	"context"
	"crypto/sha256"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// checksums writes the list that sha256sum -c reads, and signs it if it can.
func (p *packer) checksums(ctx context.Context) error {
	slices.Sort(p.made)
	var list strings.Builder
	for _, name := range p.made {
		data, err := os.ReadFile(filepath.Join(p.out, name))
		if err != nil {
			return err
		}
		fmt.Fprintf(&list, "%x  %s\n", sha256.Sum256(data), name)
	}
	file := filepath.Join(p.out, "SHA256SUMS")
	if err := os.WriteFile(file, []byte(list.String()), 0o644); err != nil {
		return err
	}
	return p.sign.list(ctx, p, file)
}
