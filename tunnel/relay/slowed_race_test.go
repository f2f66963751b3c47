//go:build race

package relay

// slowed says that the race detector makes all of it ten times as dear: tests of
// many visitors have fewer then.
const slowed = true
