package e2e

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"adit/internal/require"
)

// speeds are what the daemon measures, DTLS first.
type speeds struct {
	Items []struct {
		Transport string `json:"transport"`
		PerSecond struct {
			In  int64 `json:"in"`
			Out int64 `json:"out"`
		} `json:"bytes_per_second"`
		Error string `json:"error"`
	} `json:"items"`
	Advice string `json:"advice"`
}

func (a *away) speed() speeds {
	a.t.Helper()
	resp, err := a.local.Post("http://127.0.0.1:37271/api/v1/speed", "application/json", http.NoBody)
	if err != nil {
		a.t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil || resp.StatusCode != http.StatusOK {
		a.t.Fatalf("%d %s, %v", resp.StatusCode, text, err)
	}
	var answer struct{ Data speeds }
	decode(a.t, string(text), &answer)
	return answer.Data
}

// TestSlowedUDPIsFoundOut has a network let little through by UDP, as some do that
// do not block it: the session stays, and its owner is told what would be faster.
func TestSlowedUDPIsFoundOut(t *testing.T) {
	require.Tool(t, "nft")
	const most = 500_000 // bytes a second, each way
	a := newAway(t)
	a.configure()
	a.awaitTransport("dtls")
	slow := func(port string) string {
		return fmt.Sprintf("udp %s 4433 limit rate over %d kbytes/second burst 128 kbytes drop", port, most/1000)
	}
	a.filter(slow("dport") + "\n" + slow("sport"))
	got := a.speed()
	t.Logf("slowed: %+v", got)
	if len(got.Items) != 2 || got.Items[0].Transport != "dtls" || got.Items[0].Error+got.Items[1].Error != "" {
		t.Fatalf("got %+v", got)
	}
	dtls, tls := got.Items[0].PerSecond, got.Items[1].PerSecond
	if max(dtls.In, dtls.Out) > 2*most || min(tls.In, tls.Out) < 4*most {
		t.Errorf("measured %+v by UDP, of %d, and %+v by TCP", dtls, most, tls)
	}
	if !strings.Contains(got.Advice, `transport = "tls"`) {
		t.Errorf("the advice is %q", got.Advice)
	}
	a.filter("")
	if got := a.speed(); got.Advice != "" || got.Items[0].Error != "" || got.Items[0].PerSecond.Out < 2*most {
		t.Errorf("not slowed any more: %+v", got)
	}
}
