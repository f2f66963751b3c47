package message

import "testing"

func TestProtocolsThatAVisitorMayChangeTo(t *testing.T) {
	for _, c := range []struct {
		asked []string
		want  string
	}{
		{nil, ""},
		{[]string{"websocket"}, "websocket"},
		{[]string{"WebSocket"}, "WebSocket"},
		{[]string{"h2c"}, ""},
		{[]string{"H2C"}, ""},
		{[]string{" h2c ,"}, ""},
		{[]string{"HTTP/2.0, h2"}, ""},
		{[]string{"h2c, websocket"}, "websocket"},
		{[]string{"TLS/1.0"}, ""},
		{[]string{"TLS/1.2, HTTP/1.1"}, ""},
		{[]string{"tls, websocket"}, "websocket"},
		{[]string{"h2c", "tcp/1"}, "tcp/1"},
		{[]string{"a,b", "c"}, "a, b, c"},
	} {
		if got := wanted(c.asked); got != c.want {
			t.Errorf("of %q the origin is asked for %q, want %q", c.asked, got, c.want)
		}
	}
}

func TestProtocolThatAnOriginChangesTo(t *testing.T) {
	for _, c := range []struct {
		asked, answered string
		want            bool
	}{
		{"websocket", "WebSocket", true},
		{"a, b", "b", true},
		{"a, b", "a, b", false},
		{"", "", false},
		{"websocket", "", false},
		{"websocket", "h2c", false},
	} {
		if got := Lists(c.asked, c.answered); got != c.want {
			t.Errorf("asked for %q, answered with %q: %v", c.asked, c.answered, got)
		}
	}
}
