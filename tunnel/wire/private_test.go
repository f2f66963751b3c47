package wire

import (
	"bytes"
	"errors"
	"strings"
	"testing"
)

func TestParsePrivate(t *testing.T) {
	for _, c := range []struct{ text, client, name string }{
		{"nas/ssh", "nas", "ssh"},
		{"adit://nas/ssh", "nas", "ssh"},
		{" ADIT://Nas.Home/SSH/ ", "nas.home", "ssh"},
		{"nas", "", ""},
		{"/ssh", "", ""},
		{"nas/", "", ""},
		{"nas/ssh/x", "", ""},
		{"nas/s.h", "", ""},
		{"nas/-s", "", ""},
		{"http://nas/ssh", "", ""},
		{"nas/" + strings.Repeat("a", 64), "", ""},
		{"na\ns/ssh", "", ""},
	} {
		client, name, err := ParsePrivate(c.text)
		if client != c.client || name != c.name || (err == nil) != (c.client != "") {
			t.Errorf("ParsePrivate(%q) = %q, %q, %v; want %q, %q", c.text, client, name, err, c.client, c.name)
		}
	}
	if client, name, err := ParsePrivate(PrivateURL("a.b-c", "d-e")); client != "a.b-c" || name != "d-e" || err != nil {
		t.Errorf("a URL that was made is read as %q, %q, %v", client, name, err)
	}
}

func TestCheckVisitors(t *testing.T) {
	for _, c := range []struct {
		visitors []string
		bad      string
	}{
		{nil, ""},
		{[]string{"laptop", "phone.2", AnyClient}, ""},
		{[]string{"laptop", "laptop"}, "twice"},
		{[]string{"Laptop"}, "not the name"},
		{[]string{""}, "not the name"},
		{[]string{"lap*"}, "not the name"},
		{[]string{strings.Repeat("ä", 200)}, "…"},
		{make([]string, MaxVisitors+1), "at most"},
	} {
		err := CheckVisitors(c.visitors)
		if c.bad == "" && err != nil || c.bad != "" && (err == nil || !strings.Contains(err.Error(), c.bad)) {
			t.Errorf("CheckVisitors(%d names %.40q) = %v, want an error with %q", len(c.visitors), c.visitors, err, c.bad)
		}
	}
}

func TestAPrefaceNamesTheClient(t *testing.T) {
	b, err := AppendPreface(nil, Preface{Endpoint: 7, Kind: StreamRaw, Client: "lap.top"})
	if err != nil {
		t.Fatal(err)
	}
	if p, err := ReadPreface(bytes.NewReader(b)); err != nil || p.Client != "lap.top" || p.Endpoint != 7 {
		t.Errorf("read as %+v, %v", p, err)
	}
	for _, name := range []string{"Lap", "a b", "a\nb", strings.Repeat("a", 64)} {
		b, err := AppendPreface(nil, Preface{Endpoint: 7, Kind: StreamRaw, Client: name})
		if err != nil {
			t.Fatal(err)
		}
		if p, err := ReadPreface(bytes.NewReader(b)); !errors.Is(err, ErrPreface) {
			t.Errorf("a client called %q is read as %+v, %v", name, p, err)
		}
	}
}

func FuzzParsePrivate(f *testing.F) {
	f.Add("nas/ssh")
	f.Add("adit://Nas.Home/SSH/")
	f.Add("//")
	f.Fuzz(func(t *testing.T, text string) {
		client, name, err := ParsePrivate(text)
		if err != nil {
			return
		}
		if c, n, err := ParsePrivate(PrivateURL(client, name)); c != client || n != name || err != nil {
			t.Errorf("%q is %q of %q, whose URL is read as %q of %q, %v", text, name, client, n, c, err)
		}
		if strings.ContainsAny(client+name, "/ \t\n%?#") {
			t.Errorf("%q is %q of %q", text, name, client)
		}
	})
}
