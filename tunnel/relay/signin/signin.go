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

// The paths that belong to the relay on sites with sign-in. All other paths in the folder
// are reserved as well, so that a path added later never belonged to an origin.
const (
	folder      = "/.adit/"
	signInPath  = folder + "sign-in"
	signOutPath = folder + "sign-out"
)

// returnPath is the path to which providers send visitors back, on the host for that.
const returnPath = "/callback"

const (
	// pendingLife is how long a visitor may spend at the provider.
	pendingLife = 15 * time.Minute
	// groupBytes and emailBytes limit the groups and the additional addresses in a
	// cookie, as JSON: browsers accept 4,096 bytes per cookie.
	groupBytes, emailBytes = 1536, 512
	// clocksDiffer is by how much the nodes' clocks may differ.
	clocksDiffer = 10 * time.Minute
)

// Config contains what Visitors needs.
type Config struct {
	// Key has 32 bytes. It is the same on all nodes of a relay.
	Key []byte
	// Host is the name that providers send visitors back to. Origin is the URL of its
	// site, without a path.
	Host, Origin string
	Providers    []Provider
	// Ended returns the time up to which sign-ins of a user, named in lower case, no
	// longer count. If zero, all of them count. Ended may be nil.
	Ended func(user string) End
	// Mark returns the mark of a sign-in that is made now. It may be nil.
	Mark func() policy.Mark
	Log  *slog.Logger
}

// End is the time up to which sign-ins no longer count.
type End struct {
	At   time.Time
	Mark policy.Mark
}

// over reports whether a sign-in is from before the end. Clocks differ between nodes,
// while marks do not as long as they are from the same store. But a store that was
// restored to an earlier state uses the same numbers twice, so a sign-in from long before
// the end is over in any case.
func (e End) over(who *policy.Identity) bool {
	switch {
	case e.At.IsZero():
		return false
	case e.Mark.Store != 0 && e.Mark.Store == who.Mark.Store:
		return e.Mark.Number > who.Mark.Number || e.At.Sub(who.Since) > clocksDiffer
	}
	return !who.Since.After(e.At)
}

// Visitors lets visitors sign in.
type Visitors struct {
	cfg       Config
	seal      *seal
	providers map[string]*provider
	swaps     chan struct{} // limits how many codes are exchanged at once
}

// New returns Visitors. It does not contact any provider yet.
func New(cfg Config) *Visitors {
	v := &Visitors{cfg: cfg, seal: newSeal(cfg.Key), providers: make(map[string]*provider), swaps: make(chan struct{}, 64)}
	for _, p := range cfg.Providers {
		v.providers[p.Name] = newProvider(p, cfg.Log)
	}
	return v
}

// Names returns the providers' names, sorted.
func (v *Visitors) Names() []string { return slices.Sorted(maps.Keys(v.providers)) }

// Status is what is known about a provider.
type Status struct {
	Name, Kind, Issuer string
	Asked              time.Time // when it was last asked; zero: never
	Error              string    // of the last time; empty: none
}

// Status returns what is known about all providers, sorted by name.
func (v *Visitors) Status() []Status {
	var list []Status
	for _, name := range v.Names() {
		p := v.providers[name]
		asked, err := p.lastAsked()
		list = append(list, Status{Name: name, Kind: cmp.Or(p.Kind, OpenID), Issuer: p.Issuer, Asked: asked, Error: err})
	}
	return list
}

// Host returns the name that providers send visitors back to.
func (v *Visitors) Host() string { return v.cfg.Host }

// URL returns the address to register with providers.
func (v *Visitors) URL() string { return CallbackURL(v.cfg.Origin) }

// CallbackURL returns the URL that providers send visitors back to at an origin.
func CallbackURL(origin string) string { return origin + returnPath }

// Site is where a visitor is, and what it takes to be let in there.
type Site struct {
	Scheme string // http or https, as the visitor sees it
	Host   string // as the visitor wrote it, with the port
	Name   string // the host in lower case, without the port
	SignIn *policy.SignIn
	// Try asks for permission to attempt an exchange; back returns the attempt.
	Try func() (back func(), ok bool)
}

// sealedFor returns what a visitor's cookie is sealed for. A cookie that was intercepted
// over http is of no use over https.
func (s Site) sealedFor() string { return s.Scheme + "://" + s.Name }

// Refuse answers with a page, which is the operator's own if there is one.
type Refuse func(w http.ResponseWriter, r *http.Request, status int, title, text string)

// Owns reports whether a path belongs to the relay on a site where visitors sign in.
func Owns(path string) bool { return strings.HasPrefix(path, folder) }

// signedIn is the content of the cookie of a visitor that has signed in.
type signedIn struct {
	policy.Identity

	Of string // the provider's mark
}

// Identity returns who the visitor is according to a request's cookie. It returns nil if
// there is no cookie, if the sign-in has expired or was ended, or if its provider is no
// longer in the relay's configuration.
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

// Ended reports whether the operator has ended a sign-in, under any of its names.
func (v *Visitors) Ended(who *policy.Identity) bool {
	if v.cfg.Ended == nil {
		return false
	}
	return slices.ContainsFunc(append([]string{who.Subject, who.Email, who.Name}, who.Emails...), func(name string) bool {
		return name != "" && v.cfg.Ended(strings.ToLower(name)).over(who)
	})
}

// Navigates reports whether a browser requests a page, and may be sent to a provider
// instead. Other requests, such as a script's, are of no use there.
func Navigates(r *http.Request) bool {
	if r.Method != http.MethodGet && r.Method != http.MethodHead || r.Header.Get("Upgrade") != "" {
		return false
	}
	if mode := r.Header.Get("Sec-Fetch-Mode"); mode != "" {
		return mode == "navigate"
	}
	return strings.Contains(r.Header.Get("Accept"), "text/html")
}

// FromPage reports whether a request comes from a page, such as its script's or one for
// an image. A browser that is asked for a password then asks its user.
func FromPage(r *http.Request) bool {
	return r.Header.Get("Sec-Fetch-Mode") != "" || r.Header.Get("Referer") != "" || r.Header.Get("Origin") != ""
}

// Begin sends a visitor to the provider. target is what it requested at the site.
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
	// Many visitors share one answer, which is logged once.
	if at, _ := p.lastAsked(); r.Context().Err() == nil && p.told.Swap(at.UnixNano()) != at.UnixNano() {
		p.log.Warn("an identity provider cannot be asked", "provider", p.Name, "error", err)
	}
	w.Header().Set("Retry-After", "10")
	refuse(w, r, http.StatusServiceUnavailable, "Nobody can sign in now", "The identity provider does not answer as it should. Try again in a moment.")
}

// Return sends a visitor who comes back from a provider on to the site that it wanted.
// The code is sealed: the owner of that site may see it, but it is of no use in another
// sign-in.
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

// Serve answers a request for a path for which Owns returns true.
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
