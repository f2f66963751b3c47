package cli

import (
	"crypto/ed25519"
	"encoding/base64"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"adit/cli/command"
	"adit/internal/buildinfo"
)

// What apply would refuse, check does not offer: a release without a program for
// this platform is none here.
func TestUpdateOffersWhatThisPlatformHas(t *testing.T) {
	public, private, err := ed25519.GenerateKey(nil)
	if err != nil {
		t.Fatal(err)
	}
	key := base64.StdEncoding.EncodeToString(public)
	own := buildinfo.Get().Platform
	for _, tt := range []struct {
		platform, says, errs string
		code                 int
	}{
		{own, "adit 99.0.0 is available; this is", "", command.ExitDone},
		{"linux/other", "", "version 99.0.0 is not offered for " + own, command.ExitFailed},
	} {
		manifest := `{"version":"99.0.0","files":{"` + tt.platform + `":{"url":"adit","size":1,"sha256":""}}}`
		signature := base64.StdEncoding.EncodeToString(ed25519.Sign(private, []byte(manifest)))
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			text := manifest
			if strings.HasSuffix(r.URL.Path, ".sig") {
				text = signature
			}
			_, _ = w.Write([]byte(text))
		}))
		code, out, errs := run(t, "", "update", "check", "--manifest", server.URL+"/adit.json", "--key", key)
		server.Close()
		if code != tt.code || !strings.Contains(out, tt.says) || !strings.Contains(errs, tt.errs) {
			t.Errorf("offered for %s: got exit code %d, %q and %q; want %d, %q and %q", tt.platform, code, out, errs, tt.code, tt.says, tt.errs)
		}
	}
}
