// Package wildcard knows names that stand for others: "*.shop.example.com" is every
// name of one label more than shop.example.com, as in a certificate (RFC 9525,
// section 6.3). shop.example.com itself is none of them, nor is a.b.shop.example.com.
package wildcard

import "strings"

const prefix = "*."

// Of returns the wildcard that a name is one of; "" if there is none: the name is a
// single label, or a wildcard itself.
func Of(name string) string {
	label, under, found := strings.Cut(name, ".")
	if !found || label == "" || label == "*" || under == "" {
		return ""
	}
	return prefix + under
}

// Base returns the name whose names a wildcard stands for. ok is false if name is
// not a wildcard; base is name then.
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

// Example returns one of the names that a wildcard stands for. Any other name is
// returned as it is.
func Example(name string) string {
	if base, ok := Base(name); ok {
		return "any." + base
	}
	return name
}
