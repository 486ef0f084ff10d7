package main

import (
	"archive/zip"
	"bytes"
	"encoding/json"
	"encoding/xml"
	"io"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestPack: the package holds what its manifests name, and is the same each time.
func TestPack(t *testing.T) {
	var first, second bytes.Buffer
	require.NoError(t, pack(&first, os.DirFS("../vscode")))
	require.NoError(t, pack(&second, os.DirFS("../vscode")))
	assert.Equal(t, first.Bytes(), second.Bytes())
	z, err := zip.NewReader(bytes.NewReader(first.Bytes()), int64(first.Len()))
	require.NoError(t, err)
	files := map[string]string{}
	for _, f := range z.File {
		r, err := f.Open()
		require.NoError(t, err)
		text, err := io.ReadAll(r)
		require.NoError(t, err)
		files[f.Name] = string(text)
	}
	var about struct {
		Main        string
		Contributes struct {
			Grammars  []struct{ Path string }
			Languages []struct{ Configuration string }
		}
	}
	require.NoError(t, json.Unmarshal([]byte(files["extension/package.json"]), &about))
	for _, path := range []string{about.Main, about.Contributes.Grammars[0].Path, about.Contributes.Languages[0].Configuration} {
		assert.NotEmpty(t, files["extension/"+strings.TrimPrefix(path, "./")], path)
	}
	var manifest struct {
		Assets []struct {
			Path string `xml:"Path,attr"`
		} `xml:"Assets>Asset"`
	}
	require.NoError(t, xml.Unmarshal([]byte(files["extension.vsixmanifest"]), &manifest))
	require.Len(t, manifest.Assets, 2)
	for _, asset := range manifest.Assets {
		assert.NotEmpty(t, files[asset.Path], asset.Path)
	}
	assert.Contains(t, files["[Content_Types].xml"], `Extension="js"`)
}

// TestScripts: the extension's scripts have no mistake of syntax.
func TestScripts(t *testing.T) {
	node, err := exec.LookPath("node")
	if err != nil {
		t.Skip("no node here")
	}
	for _, name := range []string{"../vscode/client.js", "../vscode/extension.js"} {
		out, err := exec.Command(node, "--check", name).CombinedOutput()
		assert.NoError(t, err, string(out))
	}
}
