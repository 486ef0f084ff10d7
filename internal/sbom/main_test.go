package main

import (
	"bytes"
	"encoding/json"
	"runtime/debug"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestModulesBecomeComponents(t *testing.T) {
	info := &debug.BuildInfo{GoVersion: "go1.26.8", Main: debug.Module{Path: "example.com/app", Version: "v1.2.3"},
		Deps: []*debug.Module{
			{Path: "example.com/a", Version: "v0.1.0", Sum: "h1:AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8="},
			{Path: "example.com/b", Version: "v0.2.0", Replace: &debug.Module{Path: "example.com/c", Version: "v0.3.0"}}},
		Settings: []debug.BuildSetting{{Key: "GOOS", Value: "linux"}}}
	var out, again bytes.Buffer
	require.NoError(t, write(&out, info))
	require.NoError(t, write(&again, info))
	assert.Equal(t, out.String(), again.String())
	var doc document
	require.NoError(t, json.Unmarshal(out.Bytes(), &doc))
	assert.Equal(t, "CycloneDX", doc.Format)
	assert.Equal(t, "pkg:golang/example.com/app@v1.2.3", doc.Metadata.Component.PURL)
	assert.Equal(t, []property{{"go:build:GOOS", "linux"}}, doc.Metadata.Component.Properties)
	require.Len(t, doc.Components, 3)
	assert.Equal(t, "pkg:golang/std@1.26.8", doc.Components[0].PURL)
	assert.Equal(t, "000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f", doc.Components[1].Hashes[0].Content)
	assert.Equal(t, "example.com/c", doc.Components[2].Name, "what a module is replaced by is what is in the binary")
	assert.Len(t, doc.Dependencies[0].On, 3)
}
