package browser

// commands open a page, best first.
var commands = [][]string{{"rundll32.exe", "url.dll,FileProtocolHandler"}}
