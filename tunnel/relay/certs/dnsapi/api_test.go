package dnsapi

import (
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"adit/tunnel/relay/certs/dnsapi/dnsapitest"
)

type fault = dnsapitest.Fault

func TestAPauseThatTheHostAsksFor(t *testing.T) {
	each(t, func(t *testing.T, d *desk) {
		d.zones.Fail(
			fault{Status: http.StatusTooManyRequests, Header: map[string]string{"Retry-After": "7"}},
			fault{Status: http.StatusServiceUnavailable},
			fault{Status: http.StatusBadGateway, Body: "<html>oops</html>"},
		)
		d.add(t, "x")
		d.want(t, "x")
		if got, want := d.paused(), []time.Duration{7 * time.Second, 2 * time.Second, 4 * time.Second}; !slices.Equal(got, want) {
			t.Errorf("it paused %v, want %v", got, want)
		}
		at := time.Date(2026, 5, 4, 12, 0, 0, 0, time.UTC)
		d.api.now = func() time.Time { return at }
		for text, want := range map[string]time.Duration{
			"": 0, "soon": 0, "-1": 0, "3": 3 * time.Second, "99999999999999": 0,
			at.Add(20 * time.Second).Format(http.TimeFormat): 20 * time.Second, at.Add(-time.Hour).Format(http.TimeFormat): 0,
		} {
			if got := d.api.retryAfter(text); got != want {
				t.Errorf("Retry-After %q: got %v, want %v", text, got, want)
			}
		}
	})
}

func TestALongPauseIsAnError(t *testing.T) {
	each(t, func(t *testing.T, d *desk) {
		d.zones.Fail(fault{Status: http.StatusTooManyRequests, Header: map[string]string{"Retry-After": "300"}})
		_, err := d.AppendRecords(t.Context(), testZone+".", txt("x"))
		if err == nil || !strings.Contains(err.Error(), "left alone for 5m0s") || len(d.zones.Asked()) != 1 {
			t.Errorf("got %v after %v", err, d.zones.Asked())
		}
	})
}

func TestAHostThatStaysDown(t *testing.T) {
	each(t, func(t *testing.T, d *desk) {
		down := fault{Status: http.StatusInternalServerError, Body: "{}"}
		d.zones.Fail(down, down, down, down)
		_, err := d.AppendRecords(t.Context(), testZone+".", txt("x"))
		if err == nil || !strings.Contains(err.Error(), "HTTP 500") || len(d.zones.Asked()) != maxTries {
			t.Errorf("got %v after %v", err, d.zones.Asked())
		}
	})
}

// A change that took effect although its answer was lost creates no second record, and is
// no error.
func TestAChangeWhoseAnswerWasLost(t *testing.T) {
	each(t, func(t *testing.T, d *desk) {
		for i, change := range []func(testing.TB, string){d.add, d.remove} {
			d.zones.LoseNextChange()
			change(t, "x")
			if p := d.paused(); len(p) == 0 {
				t.Error("no answer was lost")
			}
			if i == 0 {
				d.want(t, "x")
			}
		}
		d.want(t)
	})
}

func TestHostsThatAskForAPauseWith400(t *testing.T) {
	for _, tt := range []struct{ host, body string }{
		{Route53, `<ErrorResponse><Error><Type>Sender</Type><Code>Throttling</Code><Message>Rate exceeded</Message></Error></ErrorResponse>`},
		{Route53, `<ErrorResponse><Error><Type>Sender</Type><Code>PriorRequestNotComplete</Code></Error></ErrorResponse>`},
		{AliDNS, `{"Code":"Throttling.User","Message":"Request was denied due to user flow control."}`},
	} {
		t.Run(tt.host, func(t *testing.T) {
			d := open(t, tt.host)
			d.zones.Fail(fault{Status: http.StatusBadRequest, Body: tt.body})
			d.add(t, "x")
			d.want(t, "x")
			if got := d.paused(); !slices.Equal(got, []time.Duration{time.Second}) {
				t.Errorf("it paused %v", got)
			}
		})
	}
}

func TestAnswersThatAreNone(t *testing.T) {
	each(t, func(t *testing.T, d *desk) {
		for _, body := range []string{"", "<html>login</html>", "[1]", `{"result":7,"success":true,"status":{"code":"1"},"Domains":7}`, strings.Repeat(" ", maxAnswer+1)} {
			d.zones.Fail(fault{Status: http.StatusOK, Body: body})
			if _, err := d.AppendRecords(t.Context(), testZone+".", txt("x")); err == nil {
				t.Errorf("an answer of %.30q was taken", body)
			}
		}
		if d.zones.Changes() > 0 {
			t.Error("something was changed")
		}
	})
}

func TestWhatAHostSaysIsCleaned(t *testing.T) {
	a, err := newAPI(config(Cloudflare))
	if err != nil {
		t.Fatal(err)
	}
	got := a.refuse(400, "1\n2", "bad\x1b[31m token "+testSecret+"\r\nnext "+strings.Repeat("語", 400)).Error()
	if strings.ContainsAny(got, "\x1b\r\n") || strings.Contains(got, testSecret) || len([]rune(got)) > maxSaid+60 {
		t.Errorf("got %q", got)
	}
}

func TestCredentialsFollowNoRedirect(t *testing.T) {
	each(t, func(t *testing.T, d *desk) {
		var asked atomic.Int32
		elsewhere := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { asked.Add(1) }))
		defer elsewhere.Close()
		d.zones.Fail(fault{Status: http.StatusTemporaryRedirect, Header: map[string]string{"Location": elsewhere.URL}})
		if _, err := d.AppendRecords(t.Context(), testZone+".", txt("x")); err == nil || !strings.Contains(err.Error(), "HTTP 307") {
			t.Errorf("got %v", err)
		}
		if asked.Load() != 0 {
			t.Error("the other server was asked")
		}
	})
}

func TestAnEndpointThatIsNotTrustedGetsNothing(t *testing.T) {
	for _, name := range Names {
		var asked atomic.Int32
		server := httptest.NewUnstartedServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { asked.Add(1) }))
		server.Config.ErrorLog = quiet
		server.StartTLS()
		cfg := config(name)
		cfg.Endpoint = server.URL
		p, err := New(cfg)
		if err != nil {
			t.Fatal(err)
		}
		p.api.pause = noPause
		if _, err := p.AppendRecords(t.Context(), testZone+".", txt("x")); err == nil || !strings.Contains(err.Error(), "certificate") || strings.Contains(err.Error(), testSecret) {
			t.Errorf("%s: got %v", name, err)
		}
		if asked.Load() != 0 {
			t.Errorf("%s: a request came", name)
		}
		server.Close()
	}
}
