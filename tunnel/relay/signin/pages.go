package signin

import (
	"net/http"
	"strconv"
	"time"

	"adit/internal/htmlpage"
	"adit/tunnel/relay/policy"
)

const pageHead = `<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="robots" content="noindex">
<title>{{.Title}}</title>
<style>
:root{color-scheme:light dark}
body{font:1rem/1.5 system-ui,sans-serif;max-width:36rem;margin:15vh auto 0;padding:0 1.5rem;overflow-wrap:anywhere}
h1{font-size:1.5rem;line-height:1.25}
form,p.links{display:flex;flex-wrap:wrap;gap:.75rem;align-items:center}
button{font:inherit;padding:.5rem 1rem;cursor:pointer}
</style>
</head>
<body>
<main>
<h1>{{.Title}}</h1>
<p>{{.Text}}</p>
`

var (
	fields  = []string{"Title", "Text"}
	whoPage = htmlpage.Must(htmlpage.Parse("page of who is signed in", pageHead+`<form method="post" action="/.adit/sign-out"><button>Sign out</button> <a href="/.adit/sign-in">Sign in as somebody else</a></form>
</main>
</body>
</html>
`, fields...))
	doorPage = htmlpage.Must(htmlpage.Parse("page of who is not signed in", pageHead+`<p class="links"><a href="/">Open the site</a> <a href="/.adit/sign-in">Sign in as somebody else</a></p>
</main>
</body>
</html>
`, fields...))
)

func show(w http.ResponseWriter, r *http.Request, status int, page *htmlpage.Page, title, text string) {
	body := page.Render(map[string]string{"Title": title, "Text": text})
	h := w.Header()
	h.Set("Cache-Control", "no-store")
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Content-Type", "text/html; charset=utf-8")
	h.Set("Content-Security-Policy", "default-src 'none'; style-src 'unsafe-inline'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'")
	h.Set("Content-Length", strconv.Itoa(len(body)))
	w.WriteHeader(status)
	if r.Method != http.MethodHead {
		w.Write(body)
	}
}

// RefuseWho answers a visitor that has signed in but is not let in, and offers to sign in
// as somebody else.
func RefuseWho(w http.ResponseWriter, r *http.Request, who *policy.Identity) {
	show(w, r, policy.Status(policy.RuleSignInWho), whoPage, "You may not visit this site",
		"You are signed in as "+who.Label()+", who is not among the allowed visitors of this site.")
}

// askSignOut shows a page with a button, so that no link can sign a visitor out.
func (v *Visitors) askSignOut(w http.ResponseWriter, r *http.Request, site Site) {
	if who := v.Identity(r, site); who != nil {
		show(w, r, http.StatusOK, whoPage, "Sign out?", "You are signed in as "+who.Label()+".")
		return
	}
	show(w, r, http.StatusOK, doorPage, "You are not signed in", "This site requires you to sign in.")
}

// signOut forgets who the visitor is at this site.
func (v *Visitors) signOut(w http.ResponseWriter, r *http.Request, site Site, refuse Refuse) {
	if http.NewCrossOriginProtection().Check(r) != nil {
		refuse(w, r, http.StatusForbidden, http.StatusText(http.StatusForbidden), "Another site cannot sign you out.")
		return
	}
	setCookie(w, site, visitorCookie, "", -time.Second)
	show(w, r, http.StatusOK, doorPage, "You are signed out", "You are still signed in with the identity provider, which may let you in here again without a password.")
}
