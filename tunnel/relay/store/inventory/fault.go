package inventory

// Kind says what is wrong with a value.
type Kind int

// Kinds of faults.
const (
	Gone  Kind = iota // it is missing but was not removed
	Older             // it is older than it was
	Back              // it is there but was removed
)

// Fault is a value that has changed unexpectedly.
type Fault struct {
	Table, Key string
	Kind       Kind
}
