//go:build !race

package link

const slowed = false
