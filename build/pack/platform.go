package main

import (
	"fmt"
	"slices"
	"strings"
)

// armv7 is 32-bit ARM with a floating-point unit, which Debian calls armhf, such as a Raspberry Pi
// 2 or later with a 32-bit system. Only Linux programs are built for it.
const armv7 = "armv7"

// architectures are the architectures that programs are built for, by their names in file names, in
// `adit version` and in the manifest of `adit update`.
var architectures = []string{"amd64", "arm64", armv7}

// parseArches reads a list of architectures.
func parseArches(list string) ([]string, error) {
	arches := strings.Split(list, ",")
	for _, arch := range arches {
		if !slices.Contains(architectures, arch) {
			return nil, fmt.Errorf("-arch %s: it may name %s", arch, strings.Join(architectures, ", "))
		}
	}
	return arches, nil
}

// archesOn returns the architectures of this run for which there are programs on system.
func (p *packer) archesOn(system string) []string {
	return slices.DeleteFunc(slices.Clone(p.arches), func(arch string) bool { return arch == armv7 && system != "linux" })
}

// target returns the compiler's settings for an architecture.
func target(arch string) []string {
	if arch == armv7 {
		return []string{"GOARCH=arm", "GOARM=7"}
	}
	return []string{"GOARCH=" + arch}
}

// packageArch returns nfpm's name for an architecture. nfpm translates it for each kind of package,
// such as arm7 to armhf, armv7hl, armv7 and armv7h.
func packageArch(arch string) string {
	if arch == armv7 {
		return "arm7"
	}
	return arch
}
