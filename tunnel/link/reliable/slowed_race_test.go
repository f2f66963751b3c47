//go:build race

package reliable

// slowed says that the race detector makes bulk ten times as dear: tests of
// throughput move less then, and expect less.
const slowed = true
