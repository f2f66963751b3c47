package policy

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"

	"adit/internal/certtest"
)

// TestOlderRelaysCannotReadWhatTheyWouldLeaveOut reads what is stored like versions that
// do not support webhooks and client certificates: into the fields that they know,
// ignoring the rest.
func TestOlderRelaysCannotReadWhatTheyWouldLeaveOut(t *testing.T) {
	type older struct {
		Allow []string `json:"allow,omitempty"`
	}
	certificates, _ := json.Marshal(certified(t, "", certtest.New(t, "Home").PEM()).Document())
	both := strings.TrimSuffix(string(certificates), "}") + "," + strings.TrimPrefix(twoHooks, "{")
	for document, readable := range map[string]bool{`{"allow":["192.0.2.1"]}`: true, `{}`: true, twoHooks: false, string(certificates): false, both: false} {
		d := parsed(t, document).Document()
		stored, err := d.Stored()
		if err != nil {
			t.Fatal(err)
		}
		if err := json.Unmarshal(stored, new(older)); (err == nil) != readable {
			t.Errorf("%s: an older relay reads %s: %v", document, stored, err)
		}
		if back, err := ReadStored(stored); err != nil || !reflect.DeepEqual(back, d) {
			t.Errorf("%s: read as %+v, %v", document, back, err)
		}
	}
	for document, needs := range map[string]string{twoHooks: `[["webhooks"],`, string(certificates): `[["client_certificates"],`, both: `[["webhooks","client_certificates"],`} {
		if stored, _ := parsed(t, document).Document().Stored(); !strings.HasPrefix(string(stored), needs) {
			t.Errorf("stored as %.60s, want %s", stored, needs)
		}
	}
	for _, stored := range []string{
		"", "null", `"sealed"`, "7", "[]", `[["webhooks"]]`, `[["webhooks"],null]`, `[["webhooks","tomorrow"],{"allow":[]}]`, `[{},{}]`, `[["webhooks"],{},{}]`, `{"allow":7}`,
	} {
		if d, err := ReadStored([]byte(stored)); err == nil {
			t.Errorf("%q is read as %+v", stored, d)
		}
	}
	if _, err := ReadStored([]byte(`[["tomorrow"],{}]`)); err == nil || !strings.Contains(err.Error(), "tomorrow") {
		t.Errorf("got %v", err)
	}
}
