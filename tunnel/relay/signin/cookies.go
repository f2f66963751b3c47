package signin

import (
	"net/http"
	"slices"
	"strings"
	"time"
)

// The cookies of a site. Over https they have a prefix that makes browsers accept them
// only from this exact host (draft-ietf-httpbis-rfc6265bis, section 4.1.3).
const (
	visitorCookie = "adit-visitor"
	pendingCookie = "adit-sign-in"
	hostPrefix    = "__Host-"
)

func cookieName(name string, site Site) string {
	if site.Scheme == "https" {
		return hostPrefix + name
	}
	return name
}

// setCookie sets a cookie for some time, or removes it if life is negative.
func setCookie(w http.ResponseWriter, site Site, name, value string, life time.Duration) {
	http.SetCookie(w, &http.Cookie{
		Name: cookieName(name, site), Value: value, Path: "/", MaxAge: int(life / time.Second),
		Secure: site.Scheme == "https", HttpOnly: true, SameSite: http.SameSiteLaxMode,
	})
}

// pendingOf returns the random text of a browser that has begun to sign in.
func pendingOf(r *http.Request, site Site) string {
	c, err := r.Cookie(cookieName(pendingCookie, site))
	if err != nil || len(c.Value) != len(randomText()) {
		return ""
	}
	return c.Value
}

// Strip removes the relay's cookies from a request, since they are not meant for its
// origin.
func Strip(h http.Header) {
	lines := h["Cookie"]
	if !slices.ContainsFunc(lines, func(line string) bool {
		return strings.Contains(line, visitorCookie) || strings.Contains(line, pendingCookie)
	}) {
		return
	}
	kept := make([]string, 0, len(lines))
	for _, line := range lines {
		var parts []string
		for part := range strings.SplitSeq(line, ";") {
			name, _, _ := strings.Cut(strings.TrimSpace(part), "=")
			switch strings.TrimPrefix(strings.TrimSpace(name), hostPrefix) {
			case visitorCookie, pendingCookie:
			default:
				parts = append(parts, part)
			}
		}
		if rest := strings.Trim(strings.Join(parts, ";"), " \t"); rest != "" {
			kept = append(kept, rest)
		}
	}
	if len(kept) == 0 {
		delete(h, "Cookie")
		return
	}
	h["Cookie"] = kept
}
