package cli

// browserCommands open a page, best first.
var browserCommands = [][]string{{"open"}}
