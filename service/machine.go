package service

import "adit/internal/allowance"

// How much of the machine the daemon uses for visitors, who are strangers to it: half of the memory
// and of the open files, and a sixteenth of the memory for data that waits for local services in
// each of two sessions.
const (
	ofVisitor    = 64 << 10 // bytes: a stream, its goroutines and the connection to the local service, with room
	fewVisitors  = 1024
	mostVisitors = 16_384
	leastUnread  = 4 << 20
	mostUnread   = 64 << 20
)

// visitorsFor returns how many visitors a session may have at once.
func visitorsFor(memory int64, files int) int {
	return int(max(min(memory/2/ofVisitor, int64(files/2), mostVisitors), fewVisitors))
}

// unreadFor returns how many bytes of a session may wait for local services.
func unreadFor(memory int64) int64 { return max(min(memory/16, mostUnread), leastUnread) }

// visitorsHere and unreadHere return the values for this machine.
func visitorsHere() int { return visitorsFor(allowance.Memory(), allowance.Files()) }
func unreadHere() int64 { return unreadFor(allowance.Memory()) }
