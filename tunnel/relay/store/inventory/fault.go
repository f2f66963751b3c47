package inventory

// Kind is what is wrong with a value.
type Kind int

// Kinds of faults.
const (
	Gone  Kind = iota // it was not removed, and is not there
	Older             // what is there is older than what was
	Back              // it was removed, and is there
)

// Fault is a value that is not as it was.
type Fault struct {
	Table, Key string
	Kind       Kind
}
