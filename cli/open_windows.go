package cli

// browserCommands open a page, best first.
var browserCommands = [][]string{{"rundll32.exe", "url.dll,FileProtocolHandler"}}
