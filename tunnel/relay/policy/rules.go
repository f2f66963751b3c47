package policy

// Rules, as a decision names them.
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
	RuleSignIn         = "sign_in"       // nobody has signed in
	RuleSignInWho      = "sign_in_who"   // who has signed in is not among those let in
	RuleWebhook        = "webhooks"      // no secret fits the signature, or there is none
	RuleWebhookPath    = "webhooks_path" // it cannot be said whether the path is a webhook's
	RuleWebhookBody    = "webhooks_body" // the body did not come whole, to be checked
	RuleWebhookBusy    = "webhooks_busy" // too many bodies are held to be checked
	// RuleQuota is no policy's: the client has used up its month.
	RuleQuota = "quota"
)

// Status is the HTTP status of a refusal by a rule.
func Status(rule string) int {
	switch rule {
	case RuleBasicAuth, RuleSignIn, RuleWebhook: // Discord asks for this one of wrong signatures
		return 401
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

// Text tells the visitor, without telling the rules.
func Text(rule string) string {
	switch rule {
	case RuleBasicAuth:
		return "A user name and password are needed."
	case RuleSignIn:
		return "Sign in first: open the site's address in a browser."
	case RuleSignInWho:
		return "The site does not let in who you are signed in as."
	case RuleWebhook:
		return "Only signed webhooks are let in here. The signature is missing or wrong, or its time is."
	case RuleWebhookPath:
		return "Servers differ in what they make of this path. Write it without encoded signs, dots and parameters."
	case RuleWebhookBody:
		return "The request's body did not come whole in time."
	case RuleWebhookBusy:
		return "Too many webhooks wait to be checked. Try again in a moment."
	case RuleRate, RulePerAddress:
		return "Too many requests come from your address. Try again in a moment."
	case RuleTries:
		return "Too many wrong passwords came from your address. Try again in a minute."
	case RuleConnections:
		return "The site takes no more visitors now. Try again in a moment."
	case RuleHours:
		return "The site is closed at this hour."
	case RuleQuota:
		return "The site has used up its traffic for this month."
	case RuleMaxBody:
		return "The request is larger than the site takes."
	}
	return "The site does not let your address in."
}
