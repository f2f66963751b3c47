package definition

import (
	"encoding/json"
	"strings"
	"testing"

	"golang.org/x/crypto/bcrypt"

	"adit/tunnel/wire"
)

// TestSteadyHashesAreNobodyElses compares the hashes of one password.
func TestSteadyHashesAreNobodyElses(t *testing.T) {
	hash := func(instance, mode, name, user, password string) string {
		t.Helper()
		policy, err := json.Marshal(map[string]any{"basic_auth": []map[string]string{{"name": user, "password": password}}})
		if err != nil {
			t.Fatal(err)
		}
		spec, no := Tunnel{Name: name, Mode: mode, Domain: "shop", Policy: policy}.withSteadyHashes(instance)
		if no != nil {
			t.Fatal(no)
		}
		return string(spec.Policy)
	}
	first := hash("i", "", "shop", "ann", "one")
	for what, c := range map[string]struct {
		other string
		same  bool
	}{
		"again":                    {hash("i", "", "shop", "ann", "one"), true},
		"another password":         {hash("i", "", "shop", "ann", "two"), false},
		"another user":             {hash("i", "", "shop", "bob", "one"), false},
		"another tunnel":           {hash("i", "", "blog", "ann", "one"), false},
		"another agent":            {hash("j", "", "shop", "ann", "one"), false},
		"a name that agents share": {hash("i", wire.ModeBalanced, "shop", "ann", "one"), false},
	} {
		if (c.other == first) != c.same {
			t.Errorf("%s: %s and %s", what, first, c.other)
		}
	}
	if a, b := hash("i", wire.ModeBalanced, "shop", "ann", "one"), hash("j", wire.ModeBalanced, "shop 2", "ann", "one"); a != b {
		t.Errorf("agents that share a name have %s and %s", a, b)
	}
}

// TestTheNextPolicyHasTheSecretsOfTheOneBefore: who edits a policy is not shown them.
func TestTheNextPolicyHasTheSecretsOfTheOneBefore(t *testing.T) {
	const before = `{"basic_auth":[{"name":"ann","hash":"$2a$ann"},{"name":"bob","hash":"$2a$bob"}],` +
		`"webhooks":[{"path":"/Hook/","provider":"github","secrets":["whole of it"]},{"path":"","provider":"slack","secrets":["other"]}]}`
	for _, c := range []struct{ document, want string }{
		{`{"basic_auth": [{"name":"bob"}], "rate": 1}`, `{"basic_auth":[{"hash":"$2a$bob","name":"bob"}],"rate":1}`},
		{`{"basic_auth":[{"name":"ann","hash":"$2a$new"}]}`, `{"basic_auth":[{"hash":"$2a$new","name":"ann"}]}`},
		{`{"basic_auth":[{"name":"ann","password":""}]}`, `{"basic_auth":[{"hash":"$2a$ann","name":"ann","password":""}]}`},
		{`{"webhooks":[{"path":"/hook","provider":"github"}]}`, `{"webhooks":[{"path":"/hook","provider":"github","secrets":["whole of it"]}]}`},
		{`{"webhooks":[{"path":"/","provider":"slack","secrets":[]}]}`, `{"webhooks":[{"path":"/","provider":"slack","secrets":["other"]}]}`},
		{`{"webhooks":[{"path":"/","provider":"github"}]}`, ""},
		{`{"basic_auth":[{"name":"ann"},{"name":"eve"}]}`, ""},
		{`{"basic_auth":"ann"}`, ""},
		{`{"allow":["192.0.2.1"]}`, `{"allow":["192.0.2.1"]}`},
		{`[]`, ""},
		{`{"allow":["` + strings.Repeat("x", maxPolicy) + `"]}`, ""},
	} {
		if got := NextPolicy(json.RawMessage(before), json.RawMessage(c.document)); string(got) != c.want {
			t.Errorf("after %.80s: got %s, want %s", c.document, got, c.want)
		}
	}
	got := NextPolicy(json.RawMessage(before), json.RawMessage(`{"basic_auth":[{"name":"ann","password":"new"}]}`))
	var d struct {
		Users []struct{ Name, Password, Hash string } `json:"basic_auth"`
	}
	if err := json.Unmarshal(got, &d); err != nil || len(d.Users) != 1 || d.Users[0].Password != "" || bcrypt.CompareHashAndPassword([]byte(d.Users[0].Hash), []byte("new")) != nil {
		t.Errorf("with a new password: %s, %v", got, err)
	}
}
