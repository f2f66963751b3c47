package sink

import (
	"bytes"
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// TestDeliveryKeepsItsIDAtTheEnd stops a sink while a receiver has a delivery and
// has not answered: what is sent for the last time is the same delivery, so that
// the receiver can know it.
func TestDeliveryKeepsItsIDAtTheEnd(t *testing.T) {
	type delivery struct{ id, body string }
	got := make(chan delivery, 10)
	hook := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		var body bytes.Buffer
		_, _ = body.ReadFrom(r.Body)
		first := len(got) == 0
		got <- delivery{r.Header.Get("Adit-Delivery"), body.String()}
		if first {
			<-r.Context().Done() // the answer is never sent
		}
	}))
	defer hook.Close()
	s := New(Options{Name: "siem", Config: Config{Type: Webhook, URL: hook.URL, Events: []string{Access}}, Private: true})
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- s.Run(ctx) }()
	s.Add(access("/first"))
	eventually(t, "the receiver has it", func() bool { return len(got) == 1 })
	s.Add(access("/second"))
	cancel()
	if err := <-ended; err != nil {
		t.Fatal(err)
	}
	close(got)
	var list []delivery
	for d := range got {
		list = append(list, d)
	}
	if len(list) != 3 || list[0] != list[1] || list[2].id == list[0].id || !strings.Contains(list[2].body, "/second") || strings.Contains(list[2].body, "/first") {
		t.Errorf("got %q", list)
	}
	if st := s.State(); st.Sent != 2 || st.Dropped != 0 || st.Queued != 0 {
		t.Errorf("it says of itself %+v", st)
	}
}
