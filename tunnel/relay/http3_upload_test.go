package relay

import (
	"io"
	"net/http"
	"testing"
)

// TestRefusedUploadsByHTTP3AreTakenToTheirEnd checks that uploads are read to the end,
// since Chromium never shows the answer to an upload that it is told to stop.
func TestRefusedUploadsByHTTP3AreTakenToTheirEnd(t *testing.T) {
	s := startSite(t, testConfig(t.TempDir()), http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.WriteHeader(http.StatusRequestEntityTooLarge)
		io.WriteString(w, "too large")
	}))
	visitor := s.visitor3(t)
	for _, c := range []struct {
		policy string
		status int
	}{
		{`{}`, http.StatusRequestEntityTooLarge}, // by the origin
		{`{"deny":["127.0.0.0/8"]}`, http.StatusForbidden},
		{`{"max_body":1000}`, http.StatusRequestEntityTooLarge},
	} {
		s.setPolicy(t, "shop", c.policy)
		const size, part = 12 << 20, 64 << 10 // more than may be ahead of its reader
		body, upload := io.Pipe()
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, s.https, body)
		if err != nil {
			t.Fatal(err)
		}
		req.ContentLength = size
		go upload.Write(make([]byte, part))
		resp, err := visitor.Do(req)
		if err != nil || resp.StatusCode != c.status {
			t.Fatalf("%s: got %v, %v; want %d", c.policy, resp, err, c.status)
		}
		for sent := part; sent < size; sent += part {
			if _, err := upload.Write(make([]byte, part)); err != nil {
				t.Fatalf("%s: after %d bytes: %v", c.policy, sent, err)
			}
		}
		upload.Close()
		if text, err := io.ReadAll(resp.Body); err != nil || len(text) == 0 {
			t.Errorf("%s: the answer is %q, %v", c.policy, text, err)
		}
		resp.Body.Close()
	}
}
