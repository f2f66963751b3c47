package definition

import (
	"encoding/json"

	"golang.org/x/crypto/bcrypt"

	"adit/tunnel/agent/refusal"
)

// maxPolicy bounds a policy that a tunnel brings, in bytes: a longer one, sealed, would
// not reach the other nodes of a relay before the tunnel does.
const maxPolicy = 32 << 10

// maxUsers is how many users the relay takes. Hashing a password takes some 0.05 s.
const maxUsers = 100

// maxPassword is the most of a password that bcrypt looks at, in bytes.
const maxPassword = 72

// normalPolicy is a policy without white space and with its passwords hashed, since it
// is kept; nil for one that lets everybody in. All else of it is the relay's to judge.
func normalPolicy(document json.RawMessage) (json.RawMessage, *refusal.Error) {
	switch {
	case len(document) == 0:
		return nil, nil
	case len(document) > maxPolicy:
		return nil, policyTooLong()
	}
	var fields map[string]json.RawMessage
	if json.Unmarshal(document, &fields) != nil || fields == nil {
		return nil, refusal.Invalid("policy", "must be a JSON object, as {%q: [%q]}", "allow", "203.0.113.0/24")
	}
	if len(fields) == 0 {
		return nil, nil
	}
	const users = "basic_auth"
	if list, ok := fields[users]; ok {
		hashed, no := hashPasswords(list)
		if no != nil {
			return nil, no
		}
		fields[users] = hashed
	}
	out, err := json.Marshal(fields)
	switch {
	case err != nil:
		return nil, refusal.Invalid("policy", "is not JSON")
	case len(out) > maxPolicy:
		return nil, policyTooLong()
	}
	return out, nil
}

func policyTooLong() *refusal.Error {
	return refusal.Invalid("policy", "is over %d KiB, which is too much to begin with", maxPolicy>>10)
}

// hashPasswords is a list of users with a hash in place of each password. What is no
// such list is left to the relay, which says what is wrong.
func hashPasswords(list json.RawMessage) (json.RawMessage, *refusal.Error) {
	var users []map[string]json.RawMessage
	if json.Unmarshal(list, &users) != nil || len(users) > maxUsers {
		return list, nil
	}
	for i, user := range users {
		var password string
		if json.Unmarshal(user["password"], &password) != nil || password == "" {
			continue
		}
		if len(password) > maxPassword {
			return nil, refusal.Invalid("policy", "basic_auth[%d].password has more than %d bytes", i, maxPassword)
		}
		hash, err := bcrypt.GenerateFromPassword([]byte(password), bcrypt.DefaultCost)
		if err != nil {
			return nil, refusal.Invalid("policy", "basic_auth[%d].password cannot be hashed", i)
		}
		delete(user, "password")
		user["hash"], _ = json.Marshal(string(hash)) // a text has no error
	}
	out, err := json.Marshal(users)
	if err != nil {
		return list, nil
	}
	return out, nil
}
