// Package sign holds the keys that distinguish compiled code of a trusted maker from other
// code. Code from a file or a server is run, so it must be signed. It is Ed25519 with the keys
// as lines of text. It must not know what is signed.
package sign

import (
	"crypto/ed25519"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/fusec/fusec/internal/regular"
)

// The words before a key, so that a secret key is not mistaken for a public one.
const (
	publicWord = "fusec-public-ed25519"
	secretWord = "fusec-secret-ed25519"
)

// NewKey makes a key from the machine's randomness.
func NewKey() (ed25519.PrivateKey, error) {
	_, key, err := ed25519.GenerateKey(rand.Reader)
	return key, err
}

// Public is the public half of a key.
func Public(key ed25519.PrivateKey) ed25519.PublicKey { return key.Public().(ed25519.PublicKey) }

// FormatPublic spells a public key as the line of text that ParsePublic reads.
func FormatPublic(key ed25519.PublicKey) string {
	return publicWord + " " + base64.StdEncoding.EncodeToString(key) + "\n"
}

// FormatSecret spells a secret key as the line of text that ParseSecret reads.
func FormatSecret(key ed25519.PrivateKey) string {
	return secretWord + " " + base64.StdEncoding.EncodeToString(key.Seed()) + "\n"
}

// ParsePublic reads a public key.
func ParsePublic(text string) (ed25519.PublicKey, error) {
	b, err := parse(text, publicWord, ed25519.PublicKeySize)
	return ed25519.PublicKey(b), err
}

// ParseSecret reads a secret key.
func ParseSecret(text string) (ed25519.PrivateKey, error) {
	seed, err := parse(text, secretWord, ed25519.SeedSize)
	if err != nil {
		return nil, err
	}
	return ed25519.NewKeyFromSeed(seed), nil
}

// parse never shows what it found: that may be a secret.
func parse(text, word string, size int) ([]byte, error) {
	fields := strings.Fields(text)
	if len(fields) != 2 || fields[0] != word {
		other := ""
		if len(fields) > 0 && (fields[0] == publicWord || fields[0] == secretWord) {
			other = ", found a " + fields[0]
		}
		return nil, fmt.Errorf("expected a key that starts with %q%s: fusec key makes a pair", word, other)
	}
	b, err := base64.StdEncoding.DecodeString(fields[1])
	if err != nil || len(b) != size {
		return nil, fmt.Errorf("malformed key: expected %d bytes in base 64 behind %q", size, word)
	}
	return b, nil
}

// maxKeyFile is more bytes than any file with a key has.
const maxKeyFile = 1 << 12

// ReadPublic reads the public key in a regular file; of a secret key the public half.
func ReadPublic(path string) (ed25519.PublicKey, error) {
	text, err := regular.ReadFile(path, maxKeyFile)
	if err != nil {
		return nil, err
	}
	if key, err := ParseSecret(string(text)); err == nil {
		return Public(key), nil
	}
	key, err := ParsePublic(string(text))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return key, nil
}

// IsSecret reports whether a file holds a secret key.
func IsSecret(path string) (bool, error) {
	text, err := regular.ReadFile(path, maxKeyFile)
	return strings.HasPrefix(strings.TrimSpace(string(text)), secretWord), err
}

// ReadSecret reads the secret key in a regular file that nobody else may read.
func ReadSecret(path string) (ed25519.PrivateKey, error) {
	f, info, err := regular.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	if os.PathSeparator == '/' && info.Mode().Perm()&0o077 != 0 {
		return nil, fmt.Errorf("%s: others can read the secret key (mode %v): chmod go= it", path, info.Mode().Perm())
	}
	text, err := regular.Read(f, info, maxKeyFile)
	if err != nil {
		return nil, err
	}
	key, err := ParseSecret(string(text))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return key, nil
}

// What can be wrong with a signature, or with the keys that are to check it.
var (
	ErrKeyLength  = errors.New("malformed key")
	ErrForeignKey = errors.New("it is signed with another key")
	ErrSignature  = errors.New("the signature does not match: it was changed after it was signed")
)

// IDSize and SignatureSize are the parts of a seal, and SealSize the whole, in bytes.
const (
	IDSize        = 8
	SignatureSize = ed25519.SignatureSize
	SealSize      = IDSize + SignatureSize
)

// ID is enough of a public key's hash to tell which key is meant.
func ID(key ed25519.PublicKey) (id [IDSize]byte) {
	sum := sha256.Sum256(key)
	copy(id[:], sum[:])
	return id
}

// Seal signs a message: the key's ID, then the signature. purpose says what the message is for,
// so that a message signed for one purpose cannot be used for another. The key must be valid:
// see CheckSecret.
func Seal(key ed25519.PrivateKey, purpose string, message []byte) []byte {
	id := ID(Public(key))
	return append(id[:], ed25519.Sign(key, framed(purpose, message))...)
}

// CheckKeys returns ErrKeyLength if one of the keys has the wrong length, on which ed25519
// would panic.
func CheckKeys(keys ...ed25519.PublicKey) error {
	for _, key := range keys {
		if len(key) != ed25519.PublicKeySize {
			return fmt.Errorf("%w: it has %d bytes, expected %d", ErrKeyLength, len(key), ed25519.PublicKeySize)
		}
	}
	return nil
}

// CheckSecret returns ErrKeyLength if a secret key has the wrong length.
func CheckSecret(key ed25519.PrivateKey) error {
	if len(key) != ed25519.PrivateKeySize {
		return fmt.Errorf("%w: it has %d bytes, expected %d", ErrKeyLength, len(key), ed25519.PrivateKeySize)
	}
	return nil
}

// Check reports whether seal is a signature of this message by one of the keys. The error is
// ErrForeignKey or ErrSignature if it is not, and ErrKeyLength if any key is malformed.
func Check(keys []ed25519.PublicKey, purpose string, message, seal []byte) error {
	if err := CheckKeys(keys...); err != nil {
		return err
	}
	if len(seal) != SealSize {
		return fmt.Errorf("%w: the seal has %d bytes, expected %d", ErrSignature, len(seal), SealSize)
	}
	for _, key := range keys {
		if id := ID(key); string(id[:]) != string(seal[:IDSize]) {
			continue
		}
		if !ed25519.Verify(key, framed(purpose, message), seal[IDSize:]) {
			return ErrSignature
		}
		return nil
	}
	return fmt.Errorf("%w, %s: expected %s", ErrForeignKey, hex.EncodeToString(seal[:IDSize]), idList(keys))
}

func framed(purpose string, message []byte) []byte {
	return append(append([]byte(purpose), 0), message...)
}

func idList(keys []ed25519.PublicKey) string {
	if len(keys) == 0 {
		return "no key at all: give one"
	}
	var names []string
	for _, key := range keys {
		id := ID(key)
		names = append(names, hex.EncodeToString(id[:]))
	}
	return strings.Join(names, " or ")
}
