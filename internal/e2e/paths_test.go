package e2e

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// TestPathsLeadToServicesOfTheirOwn publishes three local services at one address, as
// a person does at the command line, asks for them, and repeats what was asked.
func TestPathsLeadToServicesOfTheirOwn(t *testing.T) {
	relay := newRelay(t)
	a := newAgent(t)
	a.configure(relay.client("shop"))
	a.awaitConnected()
	service := func(name string) string {
		s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			body, _ := io.ReadAll(r.Body)
			fmt.Fprintf(w, "%s %s %q %s", name, r.RequestURI, r.Header.Values("X-Forwarded-Prefix"), body)
		}))
		t.Cleanup(s.Close)
		return strings.TrimPrefix(s.URL, "http://")
	}
	own, api, files := service("own"), service("api"), service("files")
	var made tunnel
	decode(t, must(t, a.env, "tunnel", "create", own, "--domain", "shop", "--path", "/api="+api, "--path", "/api/files=http://"+files+",strip", "--json"), &made)
	ask := func(path, body string) string {
		t.Helper()
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, made.PublicURL+path, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("X-Forwarded-Prefix", "/evil")
		resp, err := relay.visitor().Do(req)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		got, err := io.ReadAll(resp.Body)
		if err != nil {
			t.Fatal(err)
		}
		return string(got)
	}
	for path, want := range map[string]string{
		"/x?q":             `own /x?q [] hello`,
		"/api":             `api /api [] hello`,
		"/api/filesx":      `api /api/filesx [] hello`,
		"/api/files/%41?q": `files /%41?q ["/api/files"] hello`,
	} {
		if got := ask(path, "hello"); got != want {
			t.Errorf("%s: got %s, want %s", path, got, want)
		}
	}
	var requests struct {
		Items []struct {
			ID         string `json:"id"`
			Path       string `json:"path"`
			TunnelPath string `json:"tunnel_path"`
			State      string `json:"state"`
		} `json:"items"`
	}
	await(t, "the requests are listed", func() error {
		requests.Items = nil // or fields that are left out keep what they had
		a.ok(http.StatusOK, http.MethodGet, "/api/v1/requests", nil, &requests)
		if len(requests.Items) < 4 {
			return fmt.Errorf("%+v", requests)
		}
		return nil
	})
	for _, r := range requests.Items {
		if r.TunnelPath != "/api/files" {
			continue
		}
		var again struct {
			URL      string `json:"url"`
			Response struct {
				Body struct {
					Text string `json:"text"`
				} `json:"body"`
			} `json:"response"`
		}
		a.ok(http.StatusOK, http.MethodPost, "/api/v1/requests/"+r.ID+"/replay", map[string]any{}, &again)
		if again.Response.Body.Text != `files /%41?q ["/api/files"] hello` || !strings.HasSuffix(again.URL, "/api/files/%41?q") {
			t.Errorf("replayed: got %+v", again)
		}
	}
	var checks struct {
		Items []struct {
			Name   string `json:"name"`
			Status string `json:"status"`
			Tried  string `json:"tried"`
		} `json:"items"`
	}
	a.ok(http.StatusOK, http.MethodPost, "/api/v1/diagnostics", nil, &checks)
	if got := fmt.Sprint(checks); !strings.Contains(got, "{local_service ok "+files+", the local service of /api/files of the tunnel ") {
		t.Errorf("diagnosed: %s", got)
	}
	// Without its paths the tunnel has all requests.
	must(t, a.env, "tunnel", "update", "shop", "--path=")
	if got, want := ask("/api/files/x", ""), `own /api/files/x [] `; got != want {
		t.Errorf("without paths: got %s, want %s", got, want)
	}
}
