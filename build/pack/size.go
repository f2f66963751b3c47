package main

import (
	"log"
	"os"
	"path/filepath"
	"strings"
)

// Limits for the size of downloads and of what they install.
const (
	programLimit = 40 << 20
	setupLimit   = 16 << 20
)

// noteSizes reports what has grown beyond its limit.
func (p *packer) noteSizes() {
	note := func(file string, limit int64) {
		if info, err := os.Stat(file); err == nil && info.Size() > limit {
			log.Printf("LARGER THAN WANTED: %s has %.1f MiB, more than %d", filepath.Base(file), float64(info.Size())/(1<<20), limit>>20)
		}
	}
	for _, system := range []string{"linux", "windows", "darwin"} {
		for _, arch := range p.archesOn(system) {
			note(p.exe(system, arch), programLimit)
		}
	}
	for _, name := range p.made {
		if strings.HasSuffix(name, "-setup.exe") && !p.quick {
			note(filepath.Join(p.out, name), setupLimit)
		}
	}
}
