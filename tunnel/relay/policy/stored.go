package policy

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
)

// What a relay must know to hold a document that has it.
const (
	needsWebhooks     = "webhooks"
	needsCertificates = "client_certificates"
)

// Stored is how a document is kept. A relay that does not know of webhooks, or of
// client certificates, would leave them out and let in who is refused here: so a
// document that has them is kept as what it needs and the document,
// [["webhooks"],{…}], which is no document to it, and it lets nobody in.
func (d Document) Stored() ([]byte, error) {
	var needs []string
	if len(d.Webhooks) > 0 {
		needs = append(needs, needsWebhooks)
	}
	if d.ClientCertificates != nil {
		needs = append(needs, needsCertificates)
	}
	if needs == nil {
		return json.Marshal(d)
	}
	return json.Marshal([]any{needs, d})
}

// ReadStored reads what Stored made, here or by another version. A document that
// cannot be held is an error.
func ReadStored(data []byte) (Document, error) {
	var d Document
	switch data = bytes.TrimSpace(data); {
	case bytes.HasPrefix(data, []byte("{")):
		return d, json.Unmarshal(data, &d)
	case !bytes.HasPrefix(data, []byte("[")):
		return d, errors.New("it is no document")
	}
	var parts []json.RawMessage
	var needs []string
	if err := json.Unmarshal(data, &parts); err != nil {
		return d, err
	}
	if len(parts) != 2 || !bytes.HasPrefix(parts[1], []byte("{")) {
		return d, errors.New("it is no document with what it needs")
	}
	if err := json.Unmarshal(parts[0], &needs); err != nil {
		return d, err
	}
	for _, need := range needs {
		if need != needsWebhooks && need != needsCertificates {
			return d, fmt.Errorf("it needs %q, which this version does not know", need)
		}
	}
	return d, json.Unmarshal(parts[1], &d)
}
