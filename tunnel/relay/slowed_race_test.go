//go:build race

package relay

// slowed is set because the race detector makes everything ten times as expensive: tests
// with many visitors then use fewer.
const slowed = true
