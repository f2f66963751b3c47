package definition

import (
	"encoding/json"
	"testing"

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
