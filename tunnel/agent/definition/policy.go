package definition

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"

	"golang.org/x/crypto/argon2"
	"golang.org/x/crypto/bcrypt"

	"adit/tunnel/agent/refusal"
	"adit/tunnel/wire"
)

// maxPolicy is the largest size of a policy supplied with a tunnel, in bytes: a longer one, sealed,
// would not reach the relay's other nodes before the tunnel does.
const maxPolicy = 32 << 10

// maxUsers is how many users the relay accepts. Hashing a password takes about 0.05 s.
const maxUsers = 100

// maxPassword is how many bytes of a password bcrypt uses.
const maxPassword = 72

// normalPolicy returns a policy without white space and with its passwords hashed, because it is
// stored; nil for one that admits everybody. Judging the rest is left to the relay.
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
	if list, ok := fields[policyUsers]; ok {
		hashed, no := hashPasswords(list, func(_, password string) (string, error) {
			hash, err := bcrypt.GenerateFromPassword([]byte(password), bcrypt.DefaultCost)
			return string(hash), err
		})
		if no != nil {
			return nil, no
		}
		fields[policyUsers] = hashed
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

// policyUsers is the field of a policy that contains its users.
const policyUsers = "basic_auth"

// Cost of argon2id: about 0.03 s for a password.
const (
	argonMemory = 19 << 10 // KiB
	argonTime   = 2
)

// withSteadyHashes returns spec with the passwords of its policy hashed so that the same password
// always has the same hash. Declarations are read again and again, and an unchanged policy must be
// recognised as such. The salt is derived from the user, the tunnel's name and the agent's
// instance, which is random, so nobody else has the same salt, except agents that share a name,
// whose policies would replace each other.
func (spec Tunnel) withSteadyHashes(instance string) (Tunnel, *refusal.Error) {
	var fields map[string]json.RawMessage
	if len(spec.Policy) > maxPolicy || json.Unmarshal(spec.Policy, &fields) != nil || fields[policyUsers] == nil {
		return spec, nil // Normalize says what is wrong
	}
	whose := []string{instance, spec.Name}
	if spec.Mode == wire.ModeBalanced {
		whose = []string{wire.ModeBalanced, spec.Domain}
	}
	hashed, no := hashPasswords(fields[policyUsers], func(user, password string) (string, error) {
		salt := sha256.Sum256(fmt.Appendf(nil, "%q %q", whose, user))
		sum := argon2.IDKey([]byte(password), salt[:16], argonTime, argonMemory, 1, 32)
		text := base64.RawStdEncoding.EncodeToString
		return fmt.Sprintf("$argon2id$v=19$m=%d,t=%d,p=1$%s$%s", argonMemory, argonTime, text(salt[:16]), text(sum)), nil
	})
	if no != nil {
		return spec, no
	}
	fields[policyUsers] = hashed
	out, err := json.Marshal(fields)
	if err != nil {
		return spec, refusal.Invalid("policy", "is not JSON")
	}
	spec.Policy = out
	return spec, nil
}

// hashPasswords returns a list of users with a hash in place of each password. Anything that is not
// such a list is left to the relay, which says what is wrong.
func hashPasswords(list json.RawMessage, hash func(user, password string) (string, error)) (json.RawMessage, *refusal.Error) {
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
		var name string
		_ = json.Unmarshal(user["name"], &name) // one without a name is the relay's to refuse
		hashed, err := hash(name, password)
		if err != nil {
			return nil, refusal.Invalid("policy", "basic_auth[%d].password cannot be hashed", i)
		}
		delete(user, "password")
		user["hash"], _ = json.Marshal(hashed) // a text has no error
	}
	out, err := json.Marshal(users)
	if err != nil {
		return list, nil
	}
	return out, nil
}
