package stdio

// List is a list as the APIs write it.
type List[T any] struct {
	Items []T `json:"items"`
}

// ListOf is a list that has its items in JSON also where there are none.
func ListOf[T any](items []T) List[T] {
	if items == nil {
		items = []T{}
	}
	return List[T]{items}
}
