package relay

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"adit/tunnel/wire"
)

// TestTheConsoleListsNamesAsPeopleCount creates names in an order that is neither the
// expected one nor that of their bytes.
func TestTheConsoleListsNamesAsPeopleCount(t *testing.T) {
	r := startRelay(t, testConfig(t.TempDir()))
	var token wire.Token
	for _, name := range []string{"shop-10", "shop-2", "shop-1", "shop-11"} {
		token = r.client(t, name)
	}
	a := connect(t, token, "i1")
	for _, name := range []string{"web-10", "web-9", "web-100"} {
		a.mustClaim(name, wire.Claim{Type: wire.TypeHTTP, Domain: name}, "")
	}
	for _, c := range []struct {
		path, field string
		want        []string
	}{
		{"/api/v1/clients", "name", []string{"shop-1", "shop-2", "shop-10", "shop-11"}},
		{"/api/v1/endpoints", "target", []string{"web-9.relay.test", "web-10.relay.test", "web-100.relay.test"}},
		{"/api/v1/claims", "target", []string{"web-9.relay.test", "web-10.relay.test", "web-100.relay.test"}},
		{"/api/v1/domains", "domain", []string{"web-9.relay.test", "web-10.relay.test", "web-100.relay.test"}},
	} {
		status, body, _ := r.ask(t, "GET", c.path, "", map[string]string{"Authorization": "Bearer " + r.AdminToken()})
		var list struct {
			Data struct{ Items []map[string]any }
		}
		if err := json.NewDecoder(strings.NewReader(body)).Decode(&list); status != 200 || err != nil {
			t.Fatalf("%s: status %d, %v: %s", c.path, status, err, body)
		}
		var got []string
		for _, item := range list.Data.Items {
			text, _ := item[c.field].(string)
			got = append(got, text)
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%s: got %q, want %q", c.path, got, c.want)
		}
	}
}
