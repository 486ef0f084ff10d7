// Package docs holds the pages of the documentation, for programs that show them. Its tests hold the pages to be
// true: programs compile or fail as the pages say, and messages, generated sections, included blocks and pictures are what
// the compiler gives. Run them with -update to rewrite what is generated.
package docs

import "embed"

// Pages holds the pages in Markdown, and their pictures below images.
//
//go:embed *.md images
var Pages embed.FS
