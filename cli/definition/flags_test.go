package definition

import (
	"encoding/json"
	"maps"
	"testing"

	"github.com/spf13/pflag"
)

// said is each flag with a value, and what a request has in its place.
var said = map[string]struct{ value, field, want string }{
	"type":            {"tcp", "type", `"tcp"`},
	"mode":            {"private", "mode", `"private"`},
	"local_ip":        {"192.0.2.1", "local_ip", `"192.0.2.1"`},
	"local_port":      {"8000", "local_port", `8000`},
	"domain":          {"shop", "domain", `"shop"`},
	"name":            {"My shop", "name", `"My shop"`},
	"local_scheme":    {"h2c", "local_scheme", `"h2c"`},
	"remote_port":     {"2222", "remote_port", `2222`},
	"host_header":     {"shop.test", "host_header", `"shop.test"`},
	"request_header":  {"X-A: b", "request_headers", `{"X-A":"b"}`},
	"response_header": {"X-C: d", "response_headers", `{"X-C":"d"}`},
	"path":            {"/api=8080", "paths", ""},
	"visitor":         {"laptop,nas", "visitors", `["laptop","nas"]`},
	"proxy_protocol":  {"v2", "proxy_protocol", `"v2"`},
	"inspect":         {"false", "inspect", `false`},
}

// TestEachFlagIsInTheRequest: none is taken and then left out, of a tunnel that is made or
// of a change.
func TestEachFlagIsInTheRequest(t *testing.T) {
	fields := func(of any) map[string]json.RawMessage {
		t.Helper()
		var m map[string]json.RawMessage
		b, err := json.Marshal(of)
		if err == nil {
			err = json.Unmarshal(b, &m)
		}
		if err != nil {
			t.Fatal(err)
		}
		return m
	}
	var none Flags
	all := pflag.NewFlagSet("", pflag.ContinueOnError)
	none.All(all)
	if got := fields(none.Update(all)); len(got) != 0 {
		t.Errorf("without a flag %s is changed", got)
	}
	unsaid := fields(none.Create())
	if unsaid["inspect"] != nil {
		t.Error("without a flag it is said whether to inspect")
	}
	for name := range said {
		if all.Lookup(name) == nil {
			t.Errorf("there is no --%s", name)
		}
	}
	all.VisitAll(func(flag *pflag.Flag) {
		c, known := said[flag.Name]
		if !known {
			t.Errorf("--%s is not in this test", flag.Name)
			return
		}
		var f Flags
		set := pflag.NewFlagSet("", pflag.ContinueOnError)
		f.All(set)
		if err := set.Parse([]string{"--" + flag.Name + "=" + c.value}); err != nil {
			t.Fatal(err)
		}
		update, create := fields(f.Update(set)), fields(f.Create())
		if len(update) != 1 || update[c.field] == nil || c.want != "" && string(update[c.field]) != c.want {
			t.Errorf("--%s %s changes %s, want %s: %s", flag.Name, c.value, update, c.field, c.want)
		}
		if string(create[c.field]) != string(update[c.field]) {
			t.Errorf("--%s %s makes %s: %s, want %s", flag.Name, c.value, c.field, create[c.field], update[c.field])
		}
		delete(create, c.field)
		rest := maps.Clone(unsaid)
		if delete(rest, c.field); !maps.EqualFunc(create, rest, func(a, b json.RawMessage) bool { return string(a) == string(b) }) {
			t.Errorf("--%s %s makes %s, too, want %s", flag.Name, c.value, create, rest)
		}
	})
}

// TestTheLocalServiceIsNamedOnce as an argument or by flags.
func TestTheLocalServiceIsNamedOnce(t *testing.T) {
	for _, c := range []struct {
		text, ip string
		port     int
		scheme   string
		wrong    bool
		before   Flags
	}{
		{text: "3000", port: 3000},
		{text: "nas.lan:80", ip: "nas.lan", port: 80},
		{text: "https://nas.lan", ip: "nas.lan", port: 443, scheme: "https"},
		{text: "HTTP://[2001:db8::1]/", ip: "2001:db8::1", port: 80, scheme: "http"},
		{text: "h2c://nas.lan:8080/", ip: "nas.lan", port: 8080, scheme: "h2c"},
		{text: "3000", ip: "nas.lan", port: 3000, scheme: "https", before: Flags{localIP: "nas.lan", localScheme: "https"}},
		{text: "3000", wrong: true, before: Flags{localPort: 3000}},
		{text: "nas.lan:80", wrong: true, before: Flags{localIP: "nas.lan"}},
		{text: "https://nas.lan", wrong: true, before: Flags{localScheme: "https"}},
		{text: "0", wrong: true},
		{text: "65536", wrong: true},
		{text: "unix:/run/app.sock", wrong: true},
		{text: "/run/app.sock", wrong: true},
		{text: "./app.sock", wrong: true},
		{text: "nas.lan:80/path", wrong: true},
		{text: "https://user@nas.lan", wrong: true},
		{text: "http://3000", port: 3000, scheme: "http"},
		{text: "2001:db8::1:80", wrong: true},
	} {
		f := c.before
		if err := f.SetLocal(c.text); err != nil != c.wrong {
			t.Errorf("%s beside %+v: %v", c.text, c.before, err)
		} else if err == nil && (f.localIP != c.ip || f.localPort != c.port || f.localScheme != c.scheme) {
			t.Errorf("%s is %q at %q, port %d; want %q at %q, port %d", c.text, f.localScheme, f.localIP, f.localPort, c.scheme, c.ip, c.port)
		}
	}
}
