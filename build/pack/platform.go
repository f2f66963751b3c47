package main

import (
	"fmt"
	"slices"
	"strings"
)

// armv7 is 32-bit ARM with a unit for floating-point numbers, which Debian calls
// armhf: a Raspberry Pi from the second on under a 32-bit system. Linux alone has
// programs for it.
const armv7 = "armv7"

// architectures are what programs are built for, by the names that they have in
// files, in `adit version` and in a manifest of `adit update`.
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

// archesOn returns the architectures of this run that system has programs for.
func (p *packer) archesOn(system string) []string {
	return slices.DeleteFunc(slices.Clone(p.arches), func(arch string) bool { return arch == armv7 && system != "linux" })
}

// target is what the compiler is told of an architecture.
func target(arch string) []string {
	if arch == armv7 {
		return []string{"GOARCH=arm", "GOARM=7"}
	}
	return []string{"GOARCH=" + arch}
}

// packageArch is what nfpm calls an architecture. It makes of that what each kind
// of package has for it, as armhf, armv7hl, armv7 and armv7h of arm7.
func packageArch(arch string) string {
	if arch == armv7 {
		return "arm7"
	}
	return arch
}
