package signin

import (
	"cmp"
	"fmt"
	"log/slog"
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"

	"adit/tunnel/relay/policy"
)

// Paths of a site that are the relay's where visitors sign in. Others begin with
// the folder too, so that none that comes later was an origin's.
const (
	folder      = "/.adit/"
	signInPath  = folder + "sign-in"
	signOutPath = folder + "sign-out"
)

// returnPath is where providers send visitors back to, at the host for it.
const returnPath = "/callback"

const (
	// pendingLife is how long a visitor may take at the provider.
	pendingLife = 15 * time.Minute
	// groupBytes and emailBytes bound the groups and the further addresses that a
	// cookie has, as JSON: browsers take 4,096 bytes of a cookie.
	groupBytes, emailBytes = 1536, 512
	// clocksDiffer is by how much those of nodes may.
	clocksDiffer = 10 * time.Minute
)

// Config is what a Visitors needs.
type Config struct {
	// Key has 32 bytes, which all nodes of a relay have alike.
	Key []byte
	// Host is the name that providers send visitors back to, and Origin the URL of
	// its site, without a path.
	Host, Origin string
	Providers    []Provider
	// Ended is up to when the sign-ins of a user, by a name in lower case, count no
	// more; zero: all count. May be nil.
	Ended func(user string) End
	// Mark is the mark of a sign-in that is made now. May be nil.
	Mark func() policy.Mark
	Log  *slog.Logger
}

// End is up to when sign-ins count no more.
type End struct {
	At   time.Time
	Mark policy.Mark
}

// over reports whether a sign-in is one of those. Nodes' clocks differ, and marks do
// not, but for those of two stores. One that was set back to what it was has the same
// numbers twice: what is long before the end is over in any case.
func (e End) over(who *policy.Identity) bool {
	switch {
	case e.At.IsZero():
		return false
	case e.Mark.Store != 0 && e.Mark.Store == who.Mark.Store:
		return e.Mark.Number > who.Mark.Number || e.At.Sub(who.Since) > clocksDiffer
	}
	return !who.Since.After(e.At)
}

// Visitors has visitors sign in.
type Visitors struct {
	cfg       Config
	seal      *seal
	providers map[string]*provider
	swaps     chan struct{} // bounds the codes that are being swapped
}

// New returns a Visitors. It asks no provider anything yet.
func New(cfg Config) *Visitors {
	v := &Visitors{cfg: cfg, seal: newSeal(cfg.Key), providers: make(map[string]*provider), swaps: make(chan struct{}, 64)}
	for _, p := range cfg.Providers {
		v.providers[p.Name] = newProvider(p, cfg.Log)
	}
	return v
}

// Names returns the providers' names, sorted.
func (v *Visitors) Names() []string { return slices.Sorted(maps.Keys(v.providers)) }

// Status is what is known of a provider.
type Status struct {
	Name, Kind, Issuer string
	Asked              time.Time // when it was asked last; zero: never yet
	Error              string    // of that time; empty: none
}

// Status returns what is known of all providers, sorted by name.
func (v *Visitors) Status() []Status {
	var list []Status
	for _, name := range v.Names() {
		p := v.providers[name]
		asked, err := p.lastAsked()
		list = append(list, Status{Name: name, Kind: cmp.Or(p.Kind, OpenID), Issuer: p.Issuer, Asked: asked, Error: err})
	}
	return list
}

// Host is the name that providers send visitors back to.
func (v *Visitors) Host() string { return v.cfg.Host }

// URL is the address to register with providers.
func (v *Visitors) URL() string { return CallbackURL(v.cfg.Origin) }

// CallbackURL is what providers send visitors back to at an origin.
func CallbackURL(origin string) string { return origin + returnPath }

// Site is where a visitor is, and what it takes to be let in there.
type Site struct {
	Scheme string // http or https, as the visitor sees it
	Host   string // as the visitor wrote it, with the port
	Name   string // the host in lower case, without the port
	SignIn *policy.SignIn
	// Try is asked for a try before a code is swapped; back gives it back.
	Try func() (back func(), ok bool)
}

// sealedFor is what a visitor's cookie is sealed for: one that was read on its way by
// http is of no use by https.
func (s Site) sealedFor() string { return s.Scheme + "://" + s.Name }

// Refuse answers with a page, the operator's own if there is one.
type Refuse func(w http.ResponseWriter, r *http.Request, status int, title, text string)

// Owns reports whether a path of a site where visitors sign in is the relay's.
func Owns(path string) bool { return strings.HasPrefix(path, folder) }

// signedIn is what the cookie of a visitor who has signed in has in it.
type signedIn struct {
	policy.Identity

	Of string // the provider's mark
}

// Identity returns who a request's cookie says that the visitor is, and nil if it
// says nothing, is out of date, was ended, or has the word of a provider that the
// relay's configuration has no more.
func (v *Visitors) Identity(r *http.Request, site Site) *policy.Identity {
	for _, c := range r.CookiesNamed(cookieName(visitorCookie, site)) {
		var who signedIn
		if !v.seal.open("visitor", site.sealedFor(), c.Value, &who) || !time.Now().Before(who.Until) {
			continue
		}
		if p := v.providers[who.Provider]; p != nil && p.is == who.Of && !v.Ended(&who.Identity) {
			return &who.Identity
		}
	}
	return nil
}

// Ended reports whether a sign-in was ended by the operator, under any of the names
// that it has.
func (v *Visitors) Ended(who *policy.Identity) bool {
	if v.cfg.Ended == nil {
		return false
	}
	return slices.ContainsFunc(append([]string{who.Subject, who.Email, who.Name}, who.Emails...), func(name string) bool {
		return name != "" && v.cfg.Ended(strings.ToLower(name)).over(who)
	})
}

// Navigates reports whether a request is a browser's for a page, which may be sent
// to a provider instead. Others, such as a script's, are of no use there.
func Navigates(r *http.Request) bool {
	if r.Method != http.MethodGet && r.Method != http.MethodHead || r.Header.Get("Upgrade") != "" {
		return false
	}
	if mode := r.Header.Get("Sec-Fetch-Mode"); mode != "" {
		return mode == "navigate"
	}
	return strings.Contains(r.Header.Get("Accept"), "text/html")
}

// FromPage reports whether a request is a page's, such as its script's or one for an
// image: a browser that is asked for a password then asks its user.
func FromPage(r *http.Request) bool {
	return r.Header.Get("Sec-Fetch-Mode") != "" || r.Header.Get("Referer") != "" || r.Header.Get("Origin") != ""
}

// Begin sends a visitor to the provider. target is what it asked for at the site.
func (v *Visitors) Begin(w http.ResponseWriter, r *http.Request, site Site, target string, refuse Refuse) {
	v.begin(w, r, site, target, false, refuse)
}

func (v *Visitors) begin(w http.ResponseWriter, r *http.Request, site Site, target string, other bool, refuse Refuse) {
	p := v.providers[site.SignIn.Provider]
	if p == nil {
		refuse(w, r, http.StatusServiceUnavailable, "Nobody can sign in now", "The relay has no identity provider with the name that the site requires. Its operator can fix that.")
		return
	}
	own := pendingOf(r, site)
	if own == "" {
		own = randomText()
	}
	st := state{Provider: p.Name, Scheme: site.Scheme, Host: site.Host, Target: target, ID: randomText(), Until: time.Now().Add(pendingLife).Unix()}
	if len(target) > 1024 {
		st.Target = "/"
	}
	t := trip{callback: v.URL(), wants: site.SignIn, secrets: v.secretsOf(own, st.ID), other: other}
	st.Browser = t.secrets.browser
	to, err := p.authorize(r.Context(), t, v.seal.close("state", "", st))
	if err != nil {
		v.unreachable(w, r, p, err, refuse)
		return
	}
	setCookie(w, site, pendingCookie, own, pendingLife)
	w.Header().Set("Cache-Control", "no-store")
	w.Header().Set("Referrer-Policy", "no-referrer")
	http.Redirect(w, r, to, http.StatusFound)
}

func (v *Visitors) unreachable(w http.ResponseWriter, r *http.Request, p *provider, err error, refuse Refuse) {
	// Many visitors have the answer to one question, which is said once.
	if at, _ := p.lastAsked(); r.Context().Err() == nil && p.told.Swap(at.UnixNano()) != at.UnixNano() {
		p.log.Warn("an identity provider cannot be asked", "provider", p.Name, "error", err)
	}
	w.Header().Set("Retry-After", "10")
	refuse(w, r, http.StatusServiceUnavailable, "Nobody can sign in now", "The identity provider does not answer as it should. Try again in a moment.")
}

// Return sends a visitor who comes from a provider on to the site that it wanted. The code
// goes sealed: whose site that is may know it, and it is of no use in another sign-in.
func (v *Visitors) Return(w http.ResponseWriter, r *http.Request, refuse Refuse) {
	if r.URL.Path != returnPath || r.Method != http.MethodGet && r.Method != http.MethodHead {
		refuse(w, r, http.StatusNotFound, "There is no page at this address", "This page is only for visitors who return from an identity provider.")
		return
	}
	var st state
	q := r.URL.Query()
	if !v.seal.open("state", "", q.Get("state"), &st) || time.Now().Unix() >= st.Until {
		refuse(w, r, http.StatusBadRequest, "This sign-in is out of date", "Open the site's address again, and sign in within 15 minutes.")
		return
	}
	if code := q.Get("code"); code != "" {
		q.Set("code", v.seal.close("code", st.ID, code))
	}
	w.Header().Set("Cache-Control", "no-store")
	w.Header().Set("Referrer-Policy", "no-referrer")
	http.Redirect(w, r, fmt.Sprintf("%s://%s%s?%s", st.Scheme, st.Host, signInPath, q.Encode()), http.StatusSeeOther)
}

// Serve answers a request for a path that Owns has reported.
func (v *Visitors) Serve(w http.ResponseWriter, r *http.Request, site Site, refuse Refuse) {
	get := r.Method == http.MethodGet || r.Method == http.MethodHead
	switch {
	case r.URL.Path == signInPath && get && r.URL.Query().Has("state"):
		v.finish(w, r, site, refuse)
	case r.URL.Path == signInPath && get:
		v.begin(w, r, site, "/", true, refuse)
	case r.URL.Path == signOutPath && get:
		v.askSignOut(w, r, site)
	case r.URL.Path == signOutPath && r.Method == http.MethodPost:
		v.signOut(w, r, site, refuse)
	case r.URL.Path == signInPath || r.URL.Path == signOutPath:
		w.Header().Set("Allow", "GET, HEAD")
		refuse(w, r, http.StatusMethodNotAllowed, "This method is not supported here", "")
	default:
		refuse(w, r, http.StatusNotFound, "There is no page at this address", "Addresses of this site that begin with "+folder+" are the relay's, where visitors sign in.")
	}
}
