package edge

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"adit/tunnel/relay/edge/exchange"
	"adit/tunnel/relay/edge/origin"
	"adit/tunnel/relay/edge/presence"
	"adit/tunnel/relay/policy"
	"adit/tunnel/relay/shape"
	"adit/tunnel/wire"
)

// still is an answer of which nothing moves.
type still struct{}

func (still) Moved() int64 { return 0 }
func (still) GiveUp()      {}
func (still) Over()        {}

// lateError is a time-out that is no context's.
type lateError struct{}

func (lateError) Error() string   { return "late" }
func (lateError) Timeout() bool   { return true }
func (lateError) Temporary() bool { return true }

// TestFailuresAreToldApart distinguishes faults of the visitor, of the origin and of nobody,
// and those that are worth another try.
func TestFailuresAreToldApart(t *testing.T) {
	goesOn := func(*presence.Set, *presence.Visit) {}
	for name, test := range map[string]struct {
		err   error
		visit func(all *presence.Set, v *presence.Visit) // what has come over it
		want  int
		retry string
		rule  string
	}{
		"the origin broke off":      {errors.New("unexpected EOF"), goesOn, http.StatusBadGateway, "", ""},
		"the origin is down":        {fmt.Errorf("dial: %w", &wire.OriginError{Reason: "connection refused"}), goesOn, http.StatusBadGateway, "", ""},
		"there is no agent":         {fmt.Errorf("pick: %w", origin.ErrNoAgent), goesOn, http.StatusServiceUnavailable, "5", ""},
		"the session has ended":     {fmt.Errorf("read: %w", net.ErrClosed), goesOn, http.StatusServiceUnavailable, "5", ""},
		"the body is too large":     {&http.MaxBytesError{Limit: 10}, goesOn, http.StatusRequestEntityTooLarge, "", ""},
		"the body is torn":          {fmt.Errorf("send: %w", exchange.ErrTorn), goesOn, http.StatusBadRequest, "", ""},
		"the visitor gave up":       {context.Canceled, goesOn, 499, "", ""},
		"its time is over":          {context.DeadlineExceeded, goesOn, http.StatusGatewayTimeout, "", ""},
		"a connection's is":         {fmt.Errorf("read: %w", lateError{}), goesOn, http.StatusGatewayTimeout, "", ""},
		"nothing moved":             {context.Canceled, func(all *presence.Set, _ *presence.Visit) { all.EndIdle(time.Hour, 0) }, http.StatusGatewayTimeout, "", ""},
		"too much of it waited":     {context.Canceled, func(_ *presence.Set, v *presence.Visit) { v.End() }, http.StatusServiceUnavailable, "5", ""},
		"it may no longer be there": {context.Canceled, func(all *presence.Set, _ *presence.Visit) { all.EndAll(policy.RuleDeny) }, http.StatusForbidden, "", policy.RuleDeny},
	} {
		var all presence.Set
		_, v := all.Enter(t.Context(), still{})
		test.visit(&all, v)
		answer, r := httptest.NewRecorder(), httptest.NewRequest(http.MethodGet, "/", nil)
		w := exchange.NewWriter(answer, new(shape.Meter), r)
		w.Visit = v
		New(Config{}).explain(w, r, test.err)
		if retry := answer.Header().Get("Retry-After"); answer.Code != test.want || retry != test.retry || w.Refused != test.rule {
			t.Errorf("%s: got status %d, another try after %q, rule %q, want %d, %q, %q", name, answer.Code, retry, w.Refused, test.want, test.retry, test.rule)
		}
		v.Leave()
	}
}

// TestRefusalsSayWhenToTryAgain also checks which credentials the answer asks for.
func TestRefusalsSayWhenToTryAgain(t *testing.T) {
	for rule, want := range map[string]struct{ retry, challenge string }{
		policy.RuleDeny: {}, policy.RuleRate: {retry: "1"}, policy.RulePerAddress: {retry: "1"}, policy.RuleConnections: {retry: "1"},
		policy.RuleTries: {retry: "60"}, policy.RuleHours: {retry: "600"}, policy.RuleQuota: {retry: "600"}, policy.RuleWebhookBusy: {retry: "5"},
		policy.RuleBasicAuth: {challenge: basicChallenge}, policy.RuleSignIn: {challenge: "Sign-In"}, policy.RuleWebhook: {challenge: "Webhook-Signature"},
	} {
		answer, r := httptest.NewRecorder(), httptest.NewRequest(http.MethodGet, "/", nil)
		New(Config{}).refusePolicy(answer, r, rule)
		h := answer.Header()
		if got := h.Get("Retry-After"); answer.Code != policy.Status(rule) || got != want.retry || h.Get("WWW-Authenticate") != want.challenge {
			t.Errorf("%s: got status %d, another try after %q, challenge %q, want %d, %q, %q", rule, answer.Code, got, h.Get("WWW-Authenticate"), policy.Status(rule), want.retry, want.challenge)
		}
	}
}
