package policy

// The rules, as decisions name them.
const (
	RuleDeny           = "deny"
	RuleAllow          = "allow"
	RuleDenyCountry    = "deny_countries"
	RuleAllowCountry   = "allow_countries"
	RuleUnknownCountry = "unknown_country"
	RuleHours          = "hours"
	RuleConnections    = "connections"
	RulePerAddress     = "connections_per_address"
	RuleRate           = "rate"
	RuleMaxBody        = "max_body"
	RuleBasicAuth      = "basic_auth"
	RuleTries          = "basic_auth_tries"
	RuleSignIn         = "sign_in"     // nobody has signed in
	RuleSignInWho      = "sign_in_who" // whoever has signed in is not among those let in
	// For certificates, if nothing else lets the visitor in.
	RuleCertificate        = "client_certificates"         // none was presented
	RuleCertificateIssuer  = "client_certificates_issuer"  // it is not from any of the authorities, or not for clients
	RuleCertificateTime    = "client_certificates_time"    // it has expired, or is not valid yet
	RuleCertificateWho     = "client_certificates_who"     // its holder is not among those let in
	RuleCertificateUnasked = "client_certificates_unasked" // the connection was not asked for one

	RuleWebhook     = "webhooks"      // no secret matches the signature, or there is no signature
	RuleWebhookPath = "webhooks_path" // it is unclear whether the path is a webhook's
	RuleWebhookBody = "webhooks_body" // the body did not arrive completely, so it could not be checked
	RuleWebhookBusy = "webhooks_busy" // too many bodies are waiting to be checked
	// RuleQuota belongs to no policy: the client has used up its monthly bytes.
	RuleQuota = "quota"

	RuleVisitors = "visitors" // the client is not among those that a private tunnel names
)

// AsksWho reports whether a rule refuses visitors that have not identified themselves by
// a password or by signing in, or that are not among those let in.
func AsksWho(rule string) bool {
	switch rule {
	case RuleBasicAuth, RuleSignIn, RuleSignInWho:
		return true
	}
	return false
}

// Status returns the HTTP status of a refusal by a rule.
func Status(rule string) int {
	switch rule {
	case RuleBasicAuth, RuleSignIn, RuleWebhook: // Discord requires this status for wrong signatures
		return 401
	case RuleCertificateUnasked:
		return 421
	case RuleWebhookPath:
		return 400
	case RuleWebhookBody:
		return 408
	case RuleRate, RuleTries, RulePerAddress:
		return 429
	case RuleConnections, RuleHours, RuleQuota, RuleWebhookBusy:
		return 503
	case RuleMaxBody:
		return 413
	}
	return 403
}

// Text returns a message for the visitor that does not reveal the rules.
func Text(rule string) string {
	switch rule {
	case RuleBasicAuth:
		return "A user name and password are needed."
	case RuleSignIn:
		return "Sign in first: open the site's address in a browser."
	case RuleSignInWho:
		return "The account that you are signed in with is not allowed here."
	case RuleCertificate:
		return "The site requires a client certificate, and your browser or program presented none. Install yours there, and open the site again."
	case RuleCertificateIssuer:
		return "Your certificate is not from an authority that the site accepts, or is not a client certificate."
	case RuleCertificateTime:
		return "Your certificate has expired, or is not valid yet."
	case RuleCertificateWho:
		return "The name in your certificate is not allowed here."
	case RuleCertificateUnasked:
		return "The site asks for a client certificate when a connection is opened, and this connection was opened without. Try again with a new connection."
	case RuleWebhook:
		return "Only signed webhooks are accepted here. The signature is missing, wrong or out of date."
	case RuleWebhookPath:
		return "This path is ambiguous. Write it without encoded characters, dots and parameters."
	case RuleWebhookBody:
		return "The request's body did not arrive in time."
	case RuleWebhookBusy:
		return "Too many webhooks are waiting to be verified. Try again in a moment."
	case RuleRate, RulePerAddress:
		return "Too many requests come from your address. Try again in a moment."
	case RuleTries:
		return "Too many wrong passwords came from your address. Try again in a minute."
	case RuleConnections:
		return "The site has too many visitors now. Try again in a moment."
	case RuleHours:
		return "The site is closed at this hour."
	case RuleQuota:
		return "The site has used up its traffic for this month."
	case RuleMaxBody:
		return "The request is larger than the site accepts."
	}
	return "The site does not allow visitors from your address."
}
