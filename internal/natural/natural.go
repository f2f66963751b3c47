// Package natural sorts names the way people count: client-2 comes before client-10.
package natural

import (
	"cmp"
	"strings"
)

// Compare orders a and b: runs of ASCII digits by their numeric value, however large, and
// everything else byte by byte. It returns 0 only for identical strings: names that differ only in
// leading zeros are ordered as strings.
func Compare(a, b string) int {
	x, y := a, b
	for x != "" && y != "" {
		if digit(x[0]) && digit(y[0]) {
			n, m := digits(x), digits(y)
			if c := compareNumbers(x[:n], y[:m]); c != 0 {
				return c
			}
			x, y = x[n:], y[m:]
			continue
		}
		if x[0] != y[0] {
			return cmp.Compare(x[0], y[0])
		}
		x, y = x[1:], y[1:]
	}
	return cmp.Or(cmp.Compare(len(x), len(y)), strings.Compare(a, b))
}

func digit(c byte) bool { return '0' <= c && c <= '9' }

// digits is how many digits s begins with.
func digits(s string) int {
	n := 0
	for n < len(s) && digit(s[n]) {
		n++
	}
	return n
}

// compareNumbers compares runs of digits of any length.
func compareNumbers(a, b string) int {
	a, b = strings.TrimLeft(a, "0"), strings.TrimLeft(b, "0")
	return cmp.Or(cmp.Compare(len(a), len(b)), strings.Compare(a, b))
}
