// Package examples holds the example programs, for programs that show them.
package examples

import "embed"

// Files holds the programs by their paths below this folder.
//
//go:embed *.fuse networks/*.fuse tutorial/*.fuse
var Files embed.FS
