package policy

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
)

// What a relay must support to apply a document that needs it.
const (
	needsWebhooks     = "webhooks"
	needsCertificates = "client_certificates"
)

// Stored returns a document in the form in which it is stored. A relay that does not
// support webhooks, or client certificates, would ignore them and let in visitors that
// are refused here. So a document with any of them is stored together with a list of what
// it needs, as [["webhooks"],{…}]. Such a relay does not recognise that as a document and
// lets nobody in.
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

// ReadStored parses what Stored returned, in this or another version. It returns an error
// for a document that this version cannot apply.
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
