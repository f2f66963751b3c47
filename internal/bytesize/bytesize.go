// Package bytesize writes counts of bytes for people.
package bytesize

import "fmt"

// Text returns n bytes in the largest unit that gives at least one, such as 1.5 MiB.
func Text(n int64) string {
	const units = "KMGTP"
	if n < 1024 {
		return fmt.Sprintf("%d B", n)
	}
	v, i := float64(n)/1024, 0
	for v >= 1024 && i < len(units)-1 {
		v, i = v/1024, i+1
	}
	return fmt.Sprintf("%.1f %ciB", v, units[i])
}
