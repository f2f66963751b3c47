package main

import (
	"bytes"
	"os"
	"testing"
)

func TestGeneratedTypesAreCurrent(t *testing.T) {
	document, err := os.ReadFile("../../../openapi.yaml")
	if err != nil {
		t.Fatal(err)
	}
	want, err := generate(document)
	if err != nil {
		t.Fatal(err)
	}
	got, err := os.ReadFile("../../types.go")
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		t.Error("types.go is not what openapi.yaml says: run go generate ./localapi/client")
	}
}

func TestGenerateStopsAtWhatItDoesNotKnow(t *testing.T) {
	_, err := generate([]byte("components: {schemas: {X: {type: object, properties: {a: {type: tuple}}}}}"))
	if err == nil {
		t.Error("a schema of an unknown type was taken")
	}
}
