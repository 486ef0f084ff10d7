package tensor

import (
	"bufio"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"

	"github.com/fusec/fusec/internal/regular"
)

// A Checkpoint is tensors by name, and what is to be known about them: what a training run needs
// to go on. Its files are .safetensors files, which every reader of the format takes, with two
// entries of their own in the metadata: the version of what is written, and a checksum over the
// names, types, shapes and elements of all arrays and over the rest of the metadata.
type Checkpoint struct {
	Arrays map[string]*Tensor
	// Metadata is the caller's. Names that begin with "fusec." are reserved.
	Metadata map[string]string
}

// The entries of a checkpoint's metadata that are not the caller's.
const (
	checkpointPrefix  = "fusec."
	checkpointVersion = checkpointPrefix + "checkpoint"
	checkpointSum     = checkpointPrefix + "sha256"
	checkpointFormat  = "1"
)

// ErrCorrupt is a checkpoint that is not what was written; for errors.Is.
var ErrCorrupt = errors.New("the checkpoint is damaged")

// WriteCheckpointFile writes a checkpoint: complete and on the disk when it returns, or not at all. The
// file is written beside path, synced, and renamed into place, so that whenever the process or the
// machine ends, path is the checkpoint before or this one.
func WriteCheckpointFile(path string, c Checkpoint) error {
	meta := map[string]string{checkpointVersion: checkpointFormat}
	for name, value := range c.Metadata {
		if strings.HasPrefix(name, checkpointPrefix) {
			return fmt.Errorf("write %s: metadata %q: names that begin with %s are reserved", path, name, checkpointPrefix)
		}
		meta[name] = value
	}
	for name, x := range c.Arrays {
		if err := x.Check(); err != nil {
			return fmt.Errorf("write %s: array %q: %w", path, name, err)
		}
	}
	meta[checkpointSum] = checkpointHash(c.Arrays, meta)
	return replaceFile(path, func(w io.Writer) error { return writeSafetensors(w, c.Arrays, meta) }, durable)
}

// ReadCheckpointFile reads what WriteCheckpointFile wrote. A file that is damaged is an error that
// matches ErrCorrupt; one that was never a checkpoint, or is of a later version, another one.
func ReadCheckpointFile(path string) (Checkpoint, error) {
	c, err := readCheckpoint(path)
	if err != nil {
		return Checkpoint{}, fmt.Errorf("%s: %w", path, err)
	}
	return c, nil
}

func readCheckpoint(path string) (Checkpoint, error) {
	f, info, err := regular.Open(path)
	if err != nil {
		return Checkpoint{}, err
	}
	defer f.Close()
	header, err := safetensorsHeader(f, info.Size())
	if err != nil {
		return Checkpoint{}, errors.Join(ErrCorrupt, err)
	}
	switch version := header.meta[checkpointVersion]; version {
	case checkpointFormat:
	case "":
		return Checkpoint{}, errors.New("no checkpoint: its metadata has no " + checkpointVersion)
	default:
		return Checkpoint{}, fmt.Errorf("a checkpoint of version %.20q: expected %s", version, checkpointFormat)
	}
	arrays, err := header.readAll(f, info.Size(), nil)
	if err != nil {
		return Checkpoint{}, errors.Join(ErrCorrupt, err)
	}
	if want, found := header.meta[checkpointSum], checkpointHash(arrays, header.meta); want != found {
		return Checkpoint{}, fmt.Errorf("%w: expected the checksum %.64q, found %q", ErrCorrupt, want, found)
	}
	delete(header.meta, checkpointVersion)
	delete(header.meta, checkpointSum)
	return Checkpoint{arrays, header.meta}, nil
}

// checkpointHash is the checksum of arrays and metadata, without the checksum itself. Each part is
// hashed with its length, so that no two checkpoints give the same bytes.
func checkpointHash(arrays map[string]*Tensor, meta map[string]string) string {
	h := sha256.New()
	w := bufio.NewWriterSize(h, 1<<16)
	text := func(s string) {
		w.Write(binary.LittleEndian.AppendUint64(nil, uint64(len(s)))) // writing to a hash never fails
		w.WriteString(s)
	}
	for _, name := range slices.Sorted(maps.Keys(meta)) {
		if name != checkpointSum {
			text(name)
			text(meta[name])
		}
	}
	for _, name := range slices.Sorted(maps.Keys(arrays)) {
		x := arrays[name]
		text(name)
		text(x.String())
		w.Write(binary.LittleEndian.AppendUint64(nil, uint64(len(x.Data))))
		w.Write(x.Data)
	}
	w.Flush()
	return hex.EncodeToString(h.Sum(nil))
}

// parseMetadata reads the metadata entry of a header: texts by name.
func parseMetadata(entry json.RawMessage) (map[string]string, error) {
	var meta map[string]string
	if err := json.Unmarshal(entry, &meta); err != nil {
		return nil, fmt.Errorf("malformed header: %s: %w", metadataKey, err)
	}
	return meta, nil
}

// syncFolder makes sure that the renaming of a file in a folder is on the disk.
func syncFolder(dir string) error {
	f, err := os.Open(dir)
	if err != nil {
		return err
	}
	defer f.Close()
	return f.Sync()
}
