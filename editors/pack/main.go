// Command pack packs an extension of VS Code: a folder with a package.json becomes a
// .vsix file, which "code --install-extension" takes. It needs no network and no Node.
//
//	go run ./editors/pack -o fusec.vsix editors/vscode
package main

import (
	"archive/zip"
	"encoding/json"
	"encoding/xml"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

func main() {
	out := flag.String("o", "fusec.vsix", "the file to write")
	flag.Parse()
	if flag.NArg() != 1 {
		fmt.Fprintln(os.Stderr, "usage: pack [-o FILE] FOLDER")
		os.Exit(2)
	}
	if err := packTo(*out, flag.Arg(0)); err != nil {
		fmt.Fprintln(os.Stderr, "pack:", err)
		os.Exit(1)
	}
}

func packTo(out, folder string) error {
	f, err := os.Create(out)
	if err != nil {
		return err
	}
	if err := pack(f, os.DirFS(folder)); err != nil {
		f.Close()
		return err
	}
	return f.Close()
}

// manifest is what the store and the editor read first.
const manifest = `<?xml version="1.0" encoding="utf-8"?>
<PackageManifest Version="2.0.0" xmlns="http://schemas.microsoft.com/developer/vsx-schema/2011">
  <Metadata>
    <Identity Language="en-US" Id="%s" Version="%s" Publisher="%s"/>
    <DisplayName>%s</DisplayName>
    <Description xml:space="preserve">%s</Description>
    <Categories>%s</Categories>
    <Properties>
      <Property Id="Microsoft.VisualStudio.Code.Engine" Value="%s"/>
    </Properties>
  </Metadata>
  <Installation><InstallationTarget Id="Microsoft.VisualStudio.Code"/></Installation>
  <Dependencies/>
  <Assets>
    <Asset Type="Microsoft.VisualStudio.Code.Manifest" Path="extension/package.json" Addressable="true"/>
    <Asset Type="Microsoft.VisualStudio.Services.Content.Details" Path="extension/README.md" Addressable="true"/>
  </Assets>
</PackageManifest>
`

const contentTypes = `<?xml version="1.0" encoding="utf-8"?>
<Types xmlns="http://schemas.openxmlformats.org/package/2006/content-types">
  <Default Extension="json" ContentType="application/json"/>
  <Default Extension="js" ContentType="application/javascript"/>
  <Default Extension="md" ContentType="text/markdown"/>
  <Default Extension="vsixmanifest" ContentType="text/xml"/>
</Types>
`

// pack writes the extension in files to w.
func pack(w interface{ Write([]byte) (int, error) }, files fs.FS) error {
	raw, err := fs.ReadFile(files, "package.json")
	if err != nil {
		return err
	}
	var about struct {
		Name, DisplayName, Description, Version, Publisher string
		Categories                                         []string
		Engines                                            struct{ VSCode string }
	}
	if err := json.Unmarshal(raw, &about); err != nil {
		return fmt.Errorf("package.json: %w", err)
	}
	z := zip.NewWriter(w)
	text := fmt.Sprintf(manifest, escaped(about.Name), escaped(about.Version), escaped(about.Publisher), escaped(about.DisplayName),
		escaped(about.Description), escaped(strings.Join(about.Categories, ",")), escaped(about.Engines.VSCode))
	if err := add(z, "extension.vsixmanifest", []byte(text)); err != nil {
		return err
	}
	if err := add(z, "[Content_Types].xml", []byte(contentTypes)); err != nil {
		return err
	}
	err = fs.WalkDir(files, ".", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || filepath.Ext(path) == ".vsix" {
			return err
		}
		content, err := fs.ReadFile(files, path)
		if err != nil {
			return err
		}
		return add(z, "extension/"+path, content)
	})
	if err != nil {
		return err
	}
	return z.Close()
}

func add(z *zip.Writer, name string, content []byte) error {
	f, err := z.CreateHeader(&zip.FileHeader{Name: name, Method: zip.Deflate}) // without a time: packing again gives the same bytes
	if err == nil {
		_, err = f.Write(content)
	}
	return err
}

func escaped(s string) string {
	var b strings.Builder
	_ = xml.EscapeText(&b, []byte(s)) // a Builder takes everything
	return b.String()
}
