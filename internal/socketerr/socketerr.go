// Package socketerr defines the errors that tell socket failures apart, for use with errors.Is. The
// constants of package syscall are no use on Windows: there they are invented values, which no call
// returns.
package socketerr

// What the system says. Each is its own error number.
var (
	// InUse is the error for a port that another program has.
	InUse error = inUse
	// NotAllowed is the error for a port that the system reserves: below 1024 on Unix, in a
	// reserved range on Windows.
	NotAllowed error = notAllowed
	// NoAddress is the error for an address that this machine does not have.
	NoAddress error = noAddress
	// Refused is the error for a port on which nobody listens.
	Refused error = refused
	// NetworkDown, NetworkUnreachable and HostUnreachable are the errors for destinations without a
	// route.
	NetworkDown        error = networkDown
	NetworkUnreachable error = networkUnreachable
	HostUnreachable    error = hostUnreachable
)
