package console

import (
	_ "embed"
	"encoding/json"
	"errors"
	"html/template"
	"net/http"
	"net/url"
	"time"

	"adit/tunnel/wire"
)

//go:embed style.css
var style []byte

//go:embed pages.html
var pagesText string

var templates = template.Must(template.New("").Funcs(template.FuncMap{
	"when": when, "bytes": size, "took": took, "tone": tone,
}).Parse(pagesText))

// view is what a page shows.
type view struct {
	Title, Path string
	In          bool
	Pages       []link
	Problem     string
	Done        string

	Status      Status
	Clients     []Client
	Token       *NewToken
	Sessions    []Session
	Endpoints   []Endpoint
	Claims      []Claim
	Policies    []Policy
	Target      string
	Document    string
	Set         bool
	Address     string
	Explanation *Explanation
	Query       Access
	Access      []wire.Access
}

type link struct{ Path, Name string }

var menu = []link{{"/", "Overview"}, {"/clients", "Clients"}, {"/endpoints", "Endpoints"}, {"/policies", "Policies"}, {"/access", "Access log"}}

// pages registers the operator's pages. They need no script.
func (c *Console) pages() {
	c.mux.HandleFunc("GET /style.css", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/css; charset=utf-8")
		w.Write(style)
	})
	c.mux.HandleFunc("POST /login", c.serveLogin)
	c.mux.HandleFunc("POST /logout", func(w http.ResponseWriter, r *http.Request) {
		c.logOut(w, r)
		http.Redirect(w, r, "/", http.StatusSeeOther)
	})
	relay := c.cfg.Relay
	c.page("GET /{$}", "overview", "Overview", func(v *view, _ *http.Request) error {
		v.Status, v.Sessions = relay.Status(), relay.SessionList()
		return nil
	})
	c.page("GET /clients", "clients", "Clients", func(v *view, _ *http.Request) error {
		v.Clients = relay.Clients()
		return nil
	})
	c.page("POST /clients", "clients", "Clients", func(v *view, r *http.Request) error {
		t, err := relay.CreateClient(r.Context(), r.FormValue("name"), Scope{})
		v.Clients = relay.Clients()
		if err == nil {
			v.Token = &t
		}
		return err
	})
	c.page("POST /clients/{name}/rotate", "clients", "Clients", func(v *view, r *http.Request) error {
		t, err := relay.NewClientToken(r.Context(), r.PathValue("name"), 24*time.Hour)
		v.Clients = relay.Clients()
		if err == nil {
			v.Token, v.Done = &t, "The old token works for 24 hours more."
		}
		return err
	})
	c.page("POST /clients/{name}/revoke", "clients", "Clients", func(v *view, r *http.Request) error {
		err := relay.DropClient(r.Context(), r.PathValue("name"))
		v.Clients = relay.Clients()
		if err == nil {
			v.Done = r.PathValue("name") + " was revoked."
		}
		return err
	})
	c.page("GET /endpoints", "endpoints", "Endpoints", func(v *view, _ *http.Request) error {
		v.Endpoints, v.Claims = relay.EndpointList(), relay.ClaimList()
		return nil
	})
	c.page("GET /policies", "policies", "Policies", func(v *view, _ *http.Request) error {
		v.Policies = relay.PolicyList()
		return nil
	})
	c.mux.HandleFunc("GET /policy", func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, "/policies/"+url.PathEscape(r.FormValue("target")), http.StatusSeeOther)
	})
	c.page("GET /policies/{target}", "policy", "Policy", func(v *view, r *http.Request) error {
		c.showPolicy(v, r.PathValue("target"))
		if v.Address = r.FormValue("address"); v.Address == "" {
			return nil
		}
		e, err := relay.Explain(Question{Target: v.Target, Address: v.Address})
		if err == nil {
			v.Explanation = &e
		}
		return err
	})
	c.page("POST /policies/{target}", "policy", "Policy", func(v *view, r *http.Request) error {
		_, err := relay.SetPolicy(r.Context(), r.PathValue("target"), []byte(r.FormValue("document")))
		c.showPolicy(v, r.PathValue("target"))
		if err != nil {
			v.Document = r.FormValue("document")
			return err
		}
		v.Done = "Saved. It is in force."
		return nil
	})
	c.page("POST /policies/{target}/delete", "policies", "Policies", func(v *view, r *http.Request) error {
		err := relay.DeletePolicy(r.Context(), r.PathValue("target"))
		v.Policies = relay.PolicyList()
		if err == nil {
			v.Done = "The policy of " + r.PathValue("target") + " was deleted."
		}
		return err
	})
	c.page("GET /access", "access", "Access log", func(v *view, r *http.Request) error {
		q, err := accessOf(stripEmpty(r), 100, 1000)
		v.Query = q
		if err != nil {
			return err
		}
		page, err := relay.Access(r.Context(), q)
		v.Access = page.Items
		return err
	})
}

// stripEmpty takes away what a form sends of fields that were left empty.
func stripEmpty(r *http.Request) *http.Request {
	q := r.URL.Query()
	for name, v := range q {
		if v[0] == "" {
			q.Del(name)
		}
	}
	out := r.Clone(r.Context())
	out.URL.RawQuery = q.Encode()
	return out
}

func (c *Console) showPolicy(v *view, target string) {
	v.Target, v.Document = target, "{\n  \n}"
	p, err := c.cfg.Relay.Policy(target)
	if err != nil {
		return
	}
	v.Set = true
	if text, err := json.MarshalIndent(p.Policy, "", "  "); err == nil {
		v.Document = string(text)
	}
}

// page registers a page that only the operator sees.
func (c *Console) page(pattern, name, title string, fill func(*view, *http.Request) error) {
	c.mux.HandleFunc(pattern, func(w http.ResponseWriter, r *http.Request) {
		v := &view{Title: title, Path: r.URL.Path, Pages: menu}
		if !c.loggedIn(r) {
			v.Title = "Log in"
			c.render(w, http.StatusUnauthorized, "login", v)
			return
		}
		v.In = true
		status := http.StatusOK
		if err := fill(v, r); err != nil {
			var e *Error
			status = http.StatusInternalServerError
			v.Problem = "The relay could not do this; its log says why."
			if errors.As(err, &e) {
				status, v.Problem = e.Status, e.Message
			} else {
				c.log.Error("console", "path", r.URL.Path, "error", err)
			}
		}
		c.render(w, status, name, v)
	})
}

func (c *Console) render(w http.ResponseWriter, status int, name string, v *view) {
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.WriteHeader(status)
	if err := templates.ExecuteTemplate(w, name, v); err != nil {
		c.log.Debug("console page", "error", err)
	}
}

func (c *Console) serveLogin(w http.ResponseWriter, r *http.Request) {
	if err := c.attempt(r, r.PostFormValue("token")); err != nil {
		status := http.StatusUnauthorized
		if errors.Is(err, errTries) {
			status = http.StatusTooManyRequests
		}
		c.render(w, status, "login", &view{Title: "Log in", Problem: "Not let in: " + err.Error() + "."})
		return
	}
	c.logIn(w, r)
	http.Redirect(w, r, "/", http.StatusSeeOther)
}
