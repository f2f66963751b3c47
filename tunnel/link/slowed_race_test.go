//go:build race

package link

// slowed says that the race detector makes all of it several times slower.
const slowed = true
