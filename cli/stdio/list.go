package stdio

// List is a list in the APIs' format.
type List[T any] struct {
	Items []T `json:"items"`
}

// ListOf returns a List that is written with its items in JSON even if there are none.
func ListOf[T any](items []T) List[T] {
	if items == nil {
		items = []T{}
	}
	return List[T]{items}
}
