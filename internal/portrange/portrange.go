// Package portrange holds the rules for ports that are published as one range, with one tunnel for
// each port.
package portrange

import "fmt"

// Most is how many ports a range may have.
const Most = 256

// Last is the highest port that there is.
const Last = 65535

// Fits reports whether there are so many ports from each first one on.
func Fits(ports int, firsts ...int) bool {
	for _, first := range firsts {
		if first > Last+1-ports {
			return false
		}
	}
	return true
}

// Nth is the n-th port from first on, counted from 0. A first one of zero, which the
// relay chooses, has none that follow.
func Nth(first, n int) int {
	if first == 0 {
		return 0
	}
	return first + n
}

// Name is what the tunnel of one port is called where the range is called name.
func Name(name string, port int) string { return fmt.Sprintf("%s-%d", name, port) }
