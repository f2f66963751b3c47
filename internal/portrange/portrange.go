// Package portrange holds the rules for ports that are published as one range, with one tunnel for
// each port.
package portrange

import "fmt"

// Most is how many ports a range may have.
const Most = 256

// Last is the highest possible port.
const Last = 65535

// Fits reports whether that many ports follow from each of the first ones.
func Fits(ports int, firsts ...int) bool {
	for _, first := range firsts {
		if first > Last+1-ports {
			return false
		}
	}
	return true
}

// Nth returns the n-th port from first, counted from 0. If first is zero, the relay chooses the
// port, and the result is zero.
func Nth(first, n int) int {
	if first == 0 {
		return 0
	}
	return first + n
}

// Name returns the name of the tunnel for one port of the range called name.
func Name(name string, port int) string { return fmt.Sprintf("%s-%d", name, port) }
