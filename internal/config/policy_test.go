package config

import (
	"encoding/json"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
)

func policyOf(t *testing.T, text string) Tunnel {
	t.Helper()
	f, err := Parse("adit.toml", []byte("[[tunnel]]\nname = \"shop\"\nlocal_port = 80\n"+text))
	if err != nil {
		t.Fatal(err)
	}
	return f.Tunnels[0]
}

func TestPolicyIsWhatTheRelayReads(t *testing.T) {
	secret := filepath.Join(t.TempDir(), "secret")
	if err := os.WriteFile(secret, []byte("\ufeffopen sesame\r\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for text, want := range map[string]string{
		"":              ``,
		"policy = {}\n": ``,
		"policy = { allow = [\"192.0.2.0/24\"], rate = 0.5, shadow = true }\n":                                               `{"allow":["192.0.2.0/24"],"rate":0.5,"shadow":true}`,
		"[tunnel.policy]\nmax_body = 1000\n[[tunnel.policy.basic_auth]]\nname = \"ann\"\npassword_file = '" + secret + "'\n": `{"max_body":1000,"basic_auth":[{"name":"ann","password":"open sesame"}]}`,
		"[[tunnel.policy.basic_auth]]\nname = \"ann\"\npassword = \"x\"\n[[tunnel.policy.basic_auth]]\nhash = \"$2\"\n":      `{"basic_auth":[{"name":"ann","password":"x"},{"hash":"$2"}]}`,
	} {
		got, err := policyOf(t, text).PolicyDocument(ReadSecret)
		if err != nil {
			t.Errorf("%s: %v", text, err)
			continue
		}
		var have, wanted any
		if json.Unmarshal(got, &have); want != "" {
			json.Unmarshal([]byte(want), &wanted)
		}
		if !reflect.DeepEqual(have, wanted) {
			t.Errorf("%s: got %s, want %s", text, got, want)
		}
	}
}

func TestMistakesInAPolicy(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	user := func(text string) string { return "policy = { basic_auth = [{ name = \"ann\", " + text + " }] }\n" }
	for text, want := range map[string]string{
		user("password_file = 'secret'"):                                                  "basic_auth[0].password_file: must be the full path of a file, in quotes",
		user("password_file = 1"):                                                         "basic_auth[0].password_file: must be the full path of a file, in quotes",
		user("password = 'x', password_file = '" + write("one", "x") + "'"):               "basic_auth[0].password_file: excludes password",
		user("password_file = '" + filepath.Join(dir, "none") + "'"):                      "basic_auth[0].password_file: cannot be read: ",
		user("password_file = '" + dir + "'"):                                             "basic_auth[0].password_file: " + dir + " is not a file",
		user("password_file = '" + write("empty", "\n") + "'"):                            "must hold one password and nothing else",
		user("password_file = '" + write("two", "one\ntwo\n") + "'"):                      "must hold one password and nothing else",
		user("password_file = '" + write("long", strings.Repeat("x", maxSecret+1)) + "'"): "must hold one password and nothing else",
		"policy = { rate = nan }\n":                                                       "has something that is not a number",
	} {
		if _, err := policyOf(t, text).PolicyDocument(ReadSecret); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want %s", text, err, want)
		}
	}
	if _, err := Parse("adit.toml", []byte("[[tunnel]]\nname = \"shop\"\nlocal_port = 80\npolicy = \"none\"\n")); err == nil || !strings.Contains(err.Error(), "must be a table, not a string") {
		t.Errorf("a text for a policy: %v", err)
	}
}

func TestPasswordsThatEverybodyMayRead(t *testing.T) {
	if !tellsModes {
		t.Skip("not here: modes tell nothing on this system")
	}
	dir := t.TempDir()
	secret, config := filepath.Join(dir, "secret"), filepath.Join(dir, Name)
	for _, c := range []struct {
		user           string
		secret, config os.FileMode
		want           string
	}{
		{"password = 'x'", 0o600, 0o644, config},
		{"password = 'x'", 0o644, 0o600, ""},
		{"password_file = '" + secret + "'", 0o600, 0o644, ""},
		{"password_file = '" + secret + "'", 0o644, 0o600, secret},
		{"hash = 'x'", 0o644, 0o644, ""},
	} {
		for path, mode := range map[string]os.FileMode{secret: c.secret, config: c.config} {
			text := "x"
			if path == config {
				text = "[[tunnel]]\nname = \"shop\"\nlocal_port = 80\npolicy = { basic_auth = [{ name = \"ann\", " + c.user + " }] }\n"
			}
			if err := os.WriteFile(path, []byte(text), mode); err != nil {
				t.Fatal(err)
			}
			if err := os.Chmod(path, mode); err != nil {
				t.Fatal(err)
			}
		}
		f, err := Load(dir)
		if err != nil {
			t.Fatal(err)
		}
		if got := f.OpenPasswords(); got != c.want {
			t.Errorf("%s, modes %o and %o: got %q, want %q", c.user, c.secret, c.config, got, c.want)
		}
	}
}
