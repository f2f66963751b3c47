package browser

// commands open a page, best first.
var commands = [][]string{{"open"}}
