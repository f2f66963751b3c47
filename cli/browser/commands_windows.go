package browser

// commands open a page, best first.
func commands() [][]string { return [][]string{{"rundll32.exe", "url.dll,FileProtocolHandler"}} }
