package fusec

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/fusec/fusec/fuse"
	"github.com/fusec/fusec/ir"
	"github.com/fusec/fusec/runtime/cache"
)

// A StoredChoice is what Tune stored for a class of sizes of a kernel.
type StoredChoice struct {
	fuse.Choice
	Graph, Name string           // of the kernel, for people
	Sizes       map[string]int64 // it was measured at
	ByRules     time.Duration    // what the rules' choice took
	Best        time.Duration    // what this one took, measured in turns with it
}

// choicesSection holds the choices of one kind of device.
const choicesSection = "choices"

func choicesKey(device ir.Device) cache.Key {
	return cache.NewKey(cache.Choice).Struct("device", device).Sum()
}

// Choices lists what Tune has stored for a kind of device, in the order of graphs and
// kernels.
func Choices(store *cache.Cache, device ir.Device) []StoredChoice {
	if store == nil {
		return nil
	}
	entry, outcome := store.Get(choicesKey(device))
	if !outcome.IsHit() {
		return nil
	}
	var list []StoredChoice
	if json.Unmarshal(entry.Section(choicesSection), &list) != nil {
		return nil // written by another version: the same as no choices
	}
	return list
}

// storeChoices replaces the choices of the classes that were measured. A class without a new choice is
// planned by the rules again. If two processes tune at the same time, choices of one of them may be
// lost.
func storeChoices(store *cache.Cache, device ir.Device, measured []fuse.Choice, found []StoredChoice) {
	list := slices.DeleteFunc(Choices(store, device), func(old StoredChoice) bool {
		return slices.ContainsFunc(measured, func(m fuse.Choice) bool {
			return m.Kernel == old.Kernel && m.Class == old.Class
		})
	})
	list = append(list, found...)
	slices.SortFunc(list, func(a, b StoredChoice) int {
		return cmp.Or(cmp.Compare(a.Graph, b.Graph), cmp.Compare(a.Name, b.Name), cmp.Compare(a.Kernel, b.Kernel),
			cmp.Compare(a.Class, b.Class))
	})
	data, err := json.Marshal(list)
	if err != nil {
		panic("BUG: choices cannot be stored: " + err.Error())
	}
	store.Put(choicesKey(device), cache.Entry{Sections: []cache.Section{{Name: choicesSection, Data: data}}})
}

// choices are stored choices as an input of planning.
type choices struct {
	list []fuse.Choice
	id   string // of the list; "" for none
}

// choicesFor reads what was stored for a kind of device.
func choicesFor(store *cache.Cache, device ir.Device) choices {
	var c choices
	for _, s := range Choices(store, device) {
		c.list = append(c.list, s.Choice)
	}
	if len(c.list) > 0 {
		sum := sha256.Sum256(fmt.Appendf(nil, "%v", c.list))
		c.id = hex.EncodeToString(sum[:])
	}
	return c
}
