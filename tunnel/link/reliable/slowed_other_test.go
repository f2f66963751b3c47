//go:build !race

package reliable

const slowed = false
