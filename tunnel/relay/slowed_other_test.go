//go:build !race

package relay

const slowed = false
