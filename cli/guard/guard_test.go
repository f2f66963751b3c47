package guard

import (
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/spf13/pflag"

	"adit/cli/stdio"
	"adit/localapi/client"
)

// TestFlagsSayWhoIsLetIn reads command lines.
func TestFlagsSayWhoIsLetIn(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	password, empty := write("password", "hush-hush\n"), write("empty", "\n")
	policy := write("policy.json", `{"allow":["192.0.2.1"],"bandwidth":1000000000001}`)
	for _, c := range []struct {
		args, in, kind, mode string
		want, failed         string // a pattern of the policy; what the error says
		password             string // a pattern
	}{
		{args: "", want: ""},
		{args: "--allow 192.0.2.1,2001:db8::/32 --allow 192.0.2.2", want: `{"allow":\["192.0.2.1","2001:db8::/32","192.0.2.2"\]}`, kind: "tcp"},
		{args: "--password", kind: "https", want: `{"basic_auth":\[{"name":"guest","password":"([a-z2-7]{12})"}\]}`, password: `[a-z2-7]{12}`},
		{args: "--password_file " + password, want: `{"basic_auth":\[{"name":"guest","password":"hush-hush"}\]}`, password: "hush-hush"},
		{args: "--password_file -", in: "from-in", want: `.*"from-in".*`, password: "from-in"},
		{args: "--policy " + policy, want: `{"allow":\["192.0.2.1"\],"bandwidth":1000000000001}`},
		{args: "--policy -", in: `{"policy":{"rate":1},"etag":"x"}`, want: `{"rate":1}`},
		{args: "--policy - --password", in: `{"rate":1}`, want: `{"basic_auth":.*,"rate":1}`, password: ".*"},
		{args: "--policy -", in: `{}`, want: ""},
		{args: "--policy " + policy + " --allow 192.0.2.2", failed: "allow is already in " + policy},
		{args: "--policy -", in: `[]`, failed: "not a JSON object"},
		{args: "--policy " + filepath.Join(dir, "none"), failed: "read the policy"},
		{args: "--policy - --password_file -", failed: "cannot both be standard input"},
		{args: "--password_file " + empty, failed: "contains no password"},
		{args: "--password --password_file " + password, failed: "use only one of them"},
		{args: "--password", kind: "tcp", failed: "only http and https tunnels"},
		{args: "--password_file " + password, kind: "tls", failed: "only http and https tunnels"},
		{args: "--password", mode: "private", failed: "only http and https tunnels"},
	} {
		var g Flags
		f := pflag.NewFlagSet("", pflag.ContinueOnError)
		f.SetOutput(io.Discard)
		g.Add(f)
		g.AddPassword(f)
		if err := f.Parse(strings.Fields(c.args)); err != nil {
			t.Fatal(err)
		}
		got, err := g.Read(&stdio.Streams{In: strings.NewReader(c.in)}, client.TunnelCreate{Type: client.TunnelType(c.kind), Mode: client.TunnelMode(c.mode)})
		if c.failed != "" {
			if err == nil || !strings.Contains(err.Error(), c.failed) || got.Policy != nil {
				t.Errorf("%s: got %s, %v; want %q", c.args, got.Policy, err, c.failed)
			}
			continue
		}
		for _, is := range []struct{ what, text, pattern string }{{"policy", string(got.Policy), c.want}, {"password", got.Password, c.password}} {
			if err != nil || !regexp.MustCompile("^"+is.pattern+"$").MatchString(is.text) {
				t.Errorf("%s: the %s is %q, %v; want %s", c.args, is.what, is.text, err, is.pattern)
			}
		}
		if got.Password != "" && !strings.Contains(string(got.Policy), got.Password) {
			t.Errorf("%s: the policy asks for another password", c.args)
		}
	}
}
