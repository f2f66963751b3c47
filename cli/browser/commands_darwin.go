package browser

// commands open a page, best first.
func commands() [][]string { return [][]string{{"open"}} }
