package loopback

import "testing"

func TestParse(t *testing.T) {
	for _, c := range []struct{ text, want string }{
		{"2222", "127.0.0.1:2222"},
		{"localhost:22", "127.0.0.1:22"},
		{"127.9.9.9:22", "127.9.9.9:22"},
		{"[::1]:22", "[::1]:22"},
		{"[::ffff:127.0.0.1]:22", "127.0.0.1:22"},
		{"", ""},
		{"0", ""},
		{"65536", ""},
		{"-1", ""},
		{"127.0.0.1", ""},
		{"127.0.0.1:0", ""},
		{"0.0.0.0:22", ""},
		{":22", ""},
		{"192.0.2.1:22", ""},
		{"nas.lan:22", ""},
		{"localhost:ssh", ""},
	} {
		addr, err := Parse(c.text)
		got := ""
		if err == nil {
			got = addr.String()
		}
		if got != c.want {
			t.Errorf("Parse(%q) = %q, %v; want %q", c.text, got, err, c.want)
		}
	}
}
