package signin

import (
	"fmt"
	"net/http"
	"regexp"
	"strings"
	"time"

	"adit/tunnel/relay/policy"
)

// errorCode matches the error codes of providers (RFC 6749, section 4.1.2.1).
var errorCode = regexp.MustCompile(`^[a-z_]{1,64}$`)

// finish exchanges the code that a visitor brings for its identity, and sends the visitor
// back to where it came from.
func (v *Visitors) finish(w http.ResponseWriter, r *http.Request, site Site, refuse Refuse) {
	var st state
	q, own := r.URL.Query(), pendingOf(r, site)
	p := v.providers[site.SignIn.Provider]
	here := v.seal.open("state", "", q.Get("state"), &st) && strings.EqualFold(st.Host, site.Host) && st.Scheme == site.Scheme
	fresh := here && time.Now().Unix() < st.Until && p != nil && st.Provider == p.Name
	secrets := v.secretsOf(own, st.ID)
	mine := own != "" && same(st.Browser, secrets.browser)
	outOfDate := func() {
		refuse(w, r, http.StatusBadRequest, "This sign-in is out of date", "Open the site's address again, and sign in within 15 minutes, with cookies allowed.")
	}
	switch {
	case here && !mine && v.Identity(r, site) != nil: // another tab has signed in in the meantime
		back(w, r, site, st.Target)
		return
	case fresh && !mine && own != "": // two tabs began at once, and this one's text was overwritten
		v.begin(w, r, site, st.Target, false, refuse)
		return
	case !fresh, !mine:
		outOfDate()
		return
	}
	elsewhere := q.Has("iss") && !p.issued(q.Get("iss")) // RFC 9207, section 2.4
	if !elsewhere && q.Get("code") == "" {
		said := q.Get("error")
		if !errorCode.MatchString(said) {
			said = "without a reason"
		}
		refuse(w, r, http.StatusForbidden, "You are not signed in", "The identity provider has refused: "+said+". Open the site's address to try again.")
		return
	}
	var code string
	if !elsewhere && !v.seal.open("code", st.ID, q.Get("code"), &code) {
		outOfDate()
		return
	}
	giveBack, ok := site.Try()
	if !ok {
		w.Header().Set("Retry-After", "60")
		refuse(w, r, http.StatusTooManyRequests, http.StatusText(http.StatusTooManyRequests), "Too many sign-ins from your address have failed. Try again in a minute.")
		return
	}
	if elsewhere {
		p.log.Warn("a sign-in comes from another provider than it was sent to", "provider", p.Name, "host", site.Name)
		refuse(w, r, http.StatusBadRequest, "This sign-in is from elsewhere", "The answer came from a different identity provider than the one that was asked. Open the site's address to try again.")
		return
	}
	select {
	case v.swaps <- struct{}{}:
		defer func() { <-v.swaps }()
	case <-r.Context().Done():
		return
	}
	// Ending sign-ins from now on ends this one, too.
	began, mark := time.Now().Truncate(time.Millisecond), policy.Mark{}
	if v.cfg.Mark != nil {
		mark = v.cfg.Mark()
	}
	who, err := p.swap(r.Context(), trip{callback: v.URL(), wants: site.SignIn, secrets: secrets}, code)
	if err != nil {
		p.log.Warn("a sign-in failed", "provider", p.Name, "host", site.Name, "error", err)
		refuse(w, r, http.StatusForbidden, "You are not signed in", "The relay could not verify the identity provider's answer; its log has the reason. Open the site's address to try again.")
		return
	}
	giveBack()
	who.Provider, who.Since, who.Mark, who.Until = p.Name, began, mark, time.Now().Add(p.Session).Truncate(time.Second)
	who.Emails, who.Groups = fitting(site.SignIn.WantedEmails(who.Emails), emailBytes), fitting(site.SignIn.Wanted(who.Groups), groupBytes)
	setCookie(w, site, visitorCookie, v.seal.close("visitor", site.sealedFor(), signedIn{*who, p.is}), time.Until(who.Until))
	setCookie(w, site, pendingCookie, "", -time.Second)
	back(w, r, site, st.Target)
}

// back sends a visitor to where it came from.
func back(w http.ResponseWriter, r *http.Request, site Site, target string) {
	w.Header().Set("Cache-Control", "no-store")
	w.Header().Set("Referrer-Policy", "no-referrer")
	http.Redirect(w, r, fmt.Sprintf("%s://%s%s", site.Scheme, site.Host, target), http.StatusSeeOther)
}

// fitting returns as many of texts as fit in a cookie.
func fitting(texts []string, room int) []string {
	size := 0
	for i, text := range texts {
		if size += len(asJSON(text)); size > room {
			return texts[:i]
		}
	}
	return texts
}
