package definition

import (
	"encoding/json"
	"strings"
)

// policyWebhooks is the field of a policy that contains its webhooks.
const policyWebhooks = "webhooks"

// NextPolicy returns the stored form of a policy that replaces another, with its passwords hashed.
// Users without a password and webhooks without secrets keep those from before. The result is nil
// if before lacks any of them, or if a tunnel could not carry the policy.
func NextPolicy(before, document json.RawMessage) json.RawMessage {
	next, no := normalPolicy(document)
	var fields, had map[string]json.RawMessage
	if no != nil || json.Unmarshal(next, &fields) != nil || json.Unmarshal(before, &had) != nil {
		return nil
	}
	sameUser := func(a, b entry) bool { return a.text("name") == b.text("name") }
	sameWebhook := func(a, b entry) bool {
		path := func(e entry) string { return strings.ToLower(strings.TrimRight(e.text("path"), "/")) }
		return a.text("provider") == b.text("provider") && path(a) == path(b)
	}
	if !fill(fields, had, policyUsers, "hash", sameUser) || !fill(fields, had, policyWebhooks, "secrets", sameWebhook) {
		return nil
	}
	out, err := json.Marshal(fields)
	if err != nil || len(out) > maxPolicy {
		return nil
	}
	return out
}

// entry is a user or a webhook of a policy.
type entry map[string]json.RawMessage

func (e entry) text(field string) (text string) {
	_ = json.Unmarshal(e[field], &text) // what is no text is the relay's to refuse
	return text
}

// has reports whether a field is set.
func (e entry) has(field string) bool {
	switch string(e[field]) {
	case "", "null", `""`, "[]":
		return false
	}
	return true
}

// fill gives entries that come without a secret the secret from the earlier list, and reports
// whether all entries have one then.
func fill(fields, before map[string]json.RawMessage, list, secret string, same func(a, b entry) bool) bool {
	if len(fields[list]) == 0 {
		return true
	}
	var entries, had []entry
	if json.Unmarshal(fields[list], &entries) != nil || len(before[list]) > 0 && json.Unmarshal(before[list], &had) != nil {
		return false
	}
	for _, e := range entries {
		for _, old := range had {
			if !e.has(secret) && same(e, old) {
				e[secret] = old[secret]
			}
		}
		if !e.has(secret) {
			return false
		}
	}
	out, err := json.Marshal(entries)
	fields[list] = out
	return err == nil
}
