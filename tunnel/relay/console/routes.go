package console

import (
	_ "embed"
	"net/http"
	"strings"
)

//go:embed openapi.yaml
var openAPI []byte

// ownRoute is a route for the console's own data, or for data that is not shown alike to
// all who may read it.
type ownRoute struct {
	pattern string
	need    need
	serve   func(http.ResponseWriter, *http.Request, who) error
}

// ownRoutes returns the routes for signing in, for accounts, logins and API tokens, for
// reading sinks, and for explaining policies.
func (c *Console) ownRoutes() []ownRoute {
	plain := func(f func(http.ResponseWriter, *http.Request) error) func(http.ResponseWriter, *http.Request, who) error {
		return func(w http.ResponseWriter, r *http.Request, _ who) error { return f(w, r) }
	}
	return []ownRoute{
		{"GET /api/v1/openapi.yaml", needNothing, func(w http.ResponseWriter, _ *http.Request, _ who) error {
			w.Header().Set("Content-Type", "application/yaml")
			_, _ = w.Write(openAPI)
			return nil
		}},
		{"GET /api/v1/session", needNothing, plain(c.session)},
		{"POST /api/v1/session", needNothing, plain(c.signIn)},
		{"DELETE /api/v1/session", needNothing, plain(c.signOut)},
		{"POST /api/v1/setup", needNothing, plain(c.setup)},

		{"GET /api/v1/figures", needRead, plain(c.figures)},

		{"POST /api/v1/policies/{target}/explain", needRead, c.explain}, // changes nothing

		{"GET /api/v1/sinks", needRead, c.listSinks},
		{"GET /api/v1/sinks/{name}", needRead, c.showSink},

		{"POST /api/v1/account/password", needAccount, c.setPassword},
		{"POST /api/v1/account/totp", needAccount, c.beginTOTP},
		{"PUT /api/v1/account/totp", needAccount, c.confirmTOTP},
		{"POST /api/v1/account/totp/remove", needAccount, c.removeTOTP},
		{"GET /api/v1/logins", needAccount, func(w http.ResponseWriter, _ *http.Request, who who) error {
			return write(w, http.StatusOK, items{c.loginList(who.account, who.login, who.may(needAdmin))})
		}},
		{"DELETE /api/v1/logins/{id}", needAccount, c.dropLogin},

		{"GET /api/v1/accounts", needAdmin, func(w http.ResponseWriter, _ *http.Request, _ who) error {
			list := []Account{}
			for _, a := range c.accounts() {
				list = append(list, a.shown())
			}
			return write(w, http.StatusOK, items{list})
		}},
		{"POST /api/v1/accounts", needAdmin, plain(c.addAccount)},
		{"PATCH /api/v1/accounts/{name}", needAdmin, plain(c.setAccount)},
		{"DELETE /api/v1/accounts/{name}", needAdmin, plain(c.deleteAccount)},
		{"GET /api/v1/tokens", needAdmin, func(w http.ResponseWriter, _ *http.Request, _ who) error {
			return write(w, http.StatusOK, items{c.tokenList()})
		}},
		{"POST /api/v1/tokens", needAdmin, plain(c.addToken)},
		{"DELETE /api/v1/tokens/{id}", needAdmin, plain(c.deleteToken)},
	}
}

// needOf returns what a route of the relay requires: whoever is let in may read
// everything but secrets, and whoever may write may write.
func needOf(pattern string) need {
	switch pattern {
	case "GET /api/v1/backup": // contains private keys
		return needAdmin
	}
	if strings.HasPrefix(pattern, "GET ") {
		return needRead
	}
	return needWrite
}

// listSinks answers with all sinks, each in the form of showSink.
func (c *Console) listSinks(w http.ResponseWriter, _ *http.Request, who who) error {
	list := []Sink{}
	for _, v := range c.cfg.Relay.SinkList() {
		list = append(list, v.shownTo(who))
	}
	return write(w, http.StatusOK, items{list})
}

// showSink answers with a sink: complete for those who may change it, without its key for
// others.
func (c *Console) showSink(w http.ResponseWriter, r *http.Request, who who) error {
	v, err := c.cfg.Relay.Sink(r.PathValue("name"))
	return giveTagged(w, v.Tag, v.shownTo(who), err)
}

func (s Sink) shownTo(who who) Sink {
	if !who.may(needWrite) {
		s.URL = s.BareURL()
	}
	return s
}

// figures answers with the figures of the last hour, or of the last day with span=day.
func (c *Console) figures(w http.ResponseWriter, r *http.Request) error {
	q, err := readQuery(r, "span")
	if err != nil {
		return err
	}
	span := q.Get("span")
	if span != "" && span != "hour" && span != "day" {
		return invalid("span", "span must be hour or day")
	}
	f := c.history.figures(span == "day")
	f.Node = c.cfg.Relay.Status().Node
	return write(w, http.StatusOK, f)
}
