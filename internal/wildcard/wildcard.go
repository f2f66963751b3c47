// Package wildcard matches names against wildcards: "*.shop.example.com" covers every name with
// exactly one label more than shop.example.com, as in a certificate (RFC 9525, section 6.3). It
// covers neither shop.example.com itself nor a.b.shop.example.com.
package wildcard

import "strings"

const prefix = "*."

// maxLabel is how long a label may be, in bytes (RFC 1035, section 2.3.4).
const maxLabel = 63

// Of returns the wildcard that covers a lower-case name, or "" if there is none: because the name
// is a single label, is itself a wildcard, or begins with something that is not a label.
func Of(name string) string {
	label, under, found := strings.Cut(name, ".")
	if !found || under == "" || !isLabel(label) {
		return ""
	}
	return prefix + under
}

// isLabel reports whether strangers may make a name with such a label: of letters,
// digits and inner hyphens, and of underscores, which browsers take.
func isLabel(label string) bool {
	if label == "" || len(label) > maxLabel || label[0] == '-' || label[len(label)-1] == '-' {
		return false
	}
	for _, c := range []byte(label) {
		if (c < 'a' || c > 'z') && (c < '0' || c > '9') && c != '-' && c != '_' {
			return false
		}
	}
	return true
}

// Base returns the name under which a wildcard covers names. If name is not a wildcard, ok is false
// and base is name.
func Base(name string) (base string, ok bool) {
	if base, ok = strings.CutPrefix(name, prefix); ok && base != "" {
		return base, true
	}
	return name, false
}

// Is reports whether a name is a wildcard.
func Is(name string) bool {
	_, ok := Base(name)
	return ok
}

// Example returns one of the names that a wildcard covers. Any other name is returned unchanged.
func Example(name string) string {
	if base, ok := Base(name); ok {
		return "any." + base
	}
	return name
}
