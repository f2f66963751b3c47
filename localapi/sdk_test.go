package localapi

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"testing"
	"time"

	"adit/internal/logring"
	"adit/localapi/client"
	"adit/tunnel/agent/inspect"
	"adit/tunnel/agent/refusal"
)

// TestClientSpeaksToTheServer drives every method of the SDK against the server.
func TestClientSpeaksToTheServer(t *testing.T) {
	token := "a-long-enough-bearer-token"
	r := serve(t, func(c *Config) {
		c.BearerToken = token
		c.Logs = func(slog.Level, time.Time, int) []logring.Line {
			return []logring.Line{{Time: fakeTime, Level: "warn", Message: "x", Fields: map[string]any{"a": "b"}}}
		}
	})
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	c := client.New(r.url, client.WithBearer(token))
	off := false
	port := 3001
	for name, call := range map[string]func() (bool, error){
		"Health": func() (bool, error) { v, err := c.Health(ctx); return v.Version == "v1.4.0", err },
		"AuthStatus": func() (bool, error) {
			v, err := c.AuthStatus(ctx)
			return v.ClientID == "nas" && v.ConfiguredAt != nil, err
		},
		"ConfigureAuth": func() (bool, error) {
			v, err := c.ConfigureAuth(ctx, client.AuthConfigure{AuthToken: "x"})
			return v.Configured, err
		},
		"ForgetAuth": func() (bool, error) { return true, c.ForgetAuth(ctx) },
		"Status":     func() (bool, error) { v, err := c.Status(ctx); return v.RTTMillis == 23.4 && v.Bytes.Out == 34, err },
		"Config":     func() (bool, error) { v, err := c.Config(ctx); return len(v.Settings) == 0, err },
		"Reconnect":  func() (bool, error) { v, err := c.Reconnect(ctx); return v.PID == 4711, err },
		"Endpoints": func() (bool, error) {
			v, err := c.Endpoints(ctx)
			return len(v) == 1 && v[0].Connections.Total == 2, err
		},
		"Tunnels": func() (bool, error) {
			v, err := c.Tunnels(ctx)
			return len(v) > 0 && v[0].Type == client.TunnelTypeHTTPS, err
		},
		"Tunnel": func() (bool, error) { v, err := c.Tunnel(ctx, "t_1"); return v.Name == "shop", err },
		"CreateTunnel": func() (bool, error) {
			v, err := c.CreateTunnel(ctx, client.TunnelCreate{LocalPort: 7, Inspect: &off})
			return v.LocalPort == 7, err
		},
		"HoldTunnel": func() (bool, error) {
			err := c.HoldTunnel(ctx, "nope")
			return client.IsCode(err, client.ErrorCodeNotFound), nil
		},
		"UpdateTunnel": func() (bool, error) {
			v, err := c.UpdateTunnel(ctx, "t_1", client.TunnelUpdate{LocalPort: &port})
			return v.ID == "t_1", err
		},
		"TunnelPolicy": func() (bool, error) {
			v, err := c.TunnelPolicy(ctx, "t_1")
			return v.Editable && v.ETag == `"none"`, err
		},
		"SetTunnelPolicy": func() (bool, error) {
			v, err := c.SetTunnelPolicy(ctx, "t_1", map[string]any{"rate": 5}, `"none"`)
			return v.SetBy == "shop" && v.Policy["rate"] == 5.0 && v.ETag == `"1"` && r.agent.expected.Get("If-Match") == `"none"`, err
		},
		"StartTunnel":  func() (bool, error) { v, err := c.StartTunnel(ctx, "t_1"); return v.ID == "t_1", err },
		"StopTunnel":   func() (bool, error) { v, err := c.StopTunnel(ctx, "t_1"); return v.ID == "t_1", err },
		"DeleteTunnel": func() (bool, error) { return true, c.DeleteTunnel(ctx, "t_1") },
		"Requests": func() (bool, error) {
			v, err := c.Requests(ctx, client.RequestFilter{TunnelID: "t_1", Kind: "http", Method: "post", Status: "2xx", Text: "o", Since: fakeTime, Until: fakeTime, Before: "req_9", Limit: 5})
			return len(v) == 2, err
		},
		"Request":       func() (bool, error) { v, err := c.Request(ctx, "r_1", true); return v.Request.Headers[0].Redacted, err },
		"Replay":        func() (bool, error) { v, err := c.Replay(ctx, "r_1", client.Replay{}); return v.ReplayOf == "r_1", err },
		"ClearRequests": func() (bool, error) { return true, c.ClearRequests(ctx) },
		"ExportHAR": func() (bool, error) {
			var b bytes.Buffer
			err := c.ExportHAR(ctx, &b, client.RequestFilter{}, false)
			return bytes.Contains(b.Bytes(), []byte(`"1.2"`)), err
		},
		"ImportHAR": func() (bool, error) { n, err := c.ImportHAR(ctx, []byte(`{"log":{"entries":[]}}`)); return n == 1, err },
		"Logs": func() (bool, error) {
			v, err := c.Logs(ctx, client.LogQuery{Level: "warn", Since: fakeTime, Limit: 3})
			return v[0].Fields["a"] == "b", err
		},
		"Diagnose": func() (bool, error) { v, err := c.Diagnose(ctx); return v[0].Name == "token", err },
		"MeasureSpeed": func() (bool, error) {
			v, err := c.MeasureSpeed(ctx)
			return v.Items[0].InUse && v.Items[0].BytesPerSecond.Out == 2 && v.Items[1].Error != "", err
		},
		"LoginLink": func() (bool, error) { v, err := c.LoginLink(ctx); return v.ExpiresAt != nil, err },
	} {
		if good, err := call(); err != nil || !good {
			t.Errorf("%s: got a good answer %t, error %v", name, good, err)
		}
	}
	if v, err := c.Pause(ctx); err != nil || v.State != "paused" || v.ConnectedSince != nil {
		t.Errorf("Pause: got %+v, %v", v, err)
	}
	if v, err := c.Resume(ctx); err != nil || v.State != "connected" {
		t.Errorf("Resume: got %+v, %v", v, err)
	}

	var asked *inspect.Filter
	for i := range r.agent.filters {
		if r.agent.filters[i].TunnelID != "" {
			asked = &r.agent.filters[i]
		}
	}
	if asked == nil || asked.Kind != "http" || asked.Method != "POST" || asked.Status != 2 || asked.Text != "o" ||
		!asked.Since.Equal(fakeTime) || !asked.Until.Equal(fakeTime) || asked.Before != "req_9" || asked.Limit != 5 {
		t.Errorf("filter: got %+v", asked)
	}
	if got := r.agent.specs[0]; got.LocalPort != 7 || got.Inspect == nil || *got.Inspect {
		t.Errorf("spec: got %+v", got)
	}
	if got := r.agent.patches[0]; got.LocalPort == nil || *got.LocalPort != 3001 || got.Domain != nil {
		t.Errorf("patch: got %+v", got)
	}

	r.agent.setRefusal(&refusal.Error{Code: refusal.CodeRelayUnreachable, Message: "no answer", Field: "x"})
	_, err := c.CreateTunnel(ctx, client.TunnelCreate{LocalPort: 7})
	var refusal *client.Error
	if !errors.As(err, &refusal) || refusal.Code != client.ErrorCodeRelayUnreachable || refusal.Status != 503 ||
		refusal.Field != "x" || refusal.Message != "no answer" || refusal.RetryAfter != retryAfter*time.Second {
		t.Errorf("refusal: got %#v", err)
	}
	if _, err := client.New(r.url).Status(ctx); !client.IsCode(err, client.ErrorCodeUnauthorized) {
		t.Errorf("without Bearer: got %v, want unauthorized", err)
	}

	r.feed.publish("log", logring.Line{Time: fakeTime, Level: "info", Message: "one"})
	var kinds []string
	for e, err := range c.Events(ctx, "") {
		if err != nil {
			t.Fatal(err)
		}
		kinds = append(kinds, e.Type+" "+e.ID)
		if len(kinds) == 2 {
			break
		}
		r.feed.publish("log", logring.Line{Time: fakeTime, Level: "info", Message: "two"})
	}
	if kinds[0] != "status 1" || kinds[1] != "log 2" {
		t.Errorf("got events %v, want status 1 and log 2", kinds)
	}
}
