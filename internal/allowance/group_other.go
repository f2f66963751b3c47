//go:build !linux

package allowance

import "math"

// ofGroup returns how many bytes of memory the process may have; on this
// system nobody says, which is math.MaxInt64.
func ofGroup(string) int64 { return math.MaxInt64 }
