package httpstore

import (
	"crypto/ed25519"
	"fmt"

	"github.com/fusec/fusec/runtime/cache"
	"github.com/fusec/fusec/runtime/sign"
)

// The environment variables that name a shared store.
const (
	EnvURL = "FUSEC_SHARED"     // its address; empty for none
	EnvKey = "FUSEC_SHARED_KEY" // a key file: a secret key also sends, a public key only reads
)

// FromEnv returns the shared store that the environment names, for cache.Options; nil
// where it names none.
func FromEnv(getenv func(string) string) (*cache.Shared, error) {
	address, path := getenv(EnvURL), getenv(EnvKey)
	if address == "" {
		return nil, nil
	}
	store, err := Open(address, nil)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", EnvURL, err)
	}
	if path == "" {
		return nil, fmt.Errorf("%s is set: %s must name the key that entries are signed with", EnvURL, EnvKey)
	}
	public, err := sign.ReadPublic(path)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", EnvKey, err)
	}
	shared := &cache.Shared{Store: store, Trusted: []ed25519.PublicKey{public}}
	isSecret, err := sign.IsSecret(path)
	if err == nil && isSecret {
		shared.Key, err = sign.ReadSecret(path)
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", EnvKey, err)
	}
	return shared, nil
}
