package ir

import "math/bits"

// Philox4x32 returns the 128 random bits of a counter under a key: ten rounds
// of Philox (Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", 2011).
func Philox4x32(counter, key uint64) [4]uint32 {
	const (
		mul0, mul1   = 0xD2511F53, 0xCD9E8D57
		weyl0, weyl1 = 0x9E3779B9, 0xBB67AE85
		rounds       = 10
	)
	c := [4]uint32{uint32(counter), uint32(counter >> 32), 0, 0}
	k0, k1 := uint32(key), uint32(key>>32)
	for range rounds {
		hi0, lo0 := bits.Mul32(mul0, c[0])
		hi1, lo1 := bits.Mul32(mul1, c[2])
		c = [4]uint32{hi1 ^ c[1] ^ k0, lo1, hi0 ^ c[3] ^ k1, lo0}
		k0, k1 = k0+weyl0, k1+weyl1
	}
	return c
}

// RandomBits returns the 32 bits that random_bits(seed, index) means: word
// index%4 of the block at counter index/4, so that four neighbours share one
// evaluation.
func RandomBits(seed, index uint64) uint32 {
	return Philox4x32(index/4, seed)[index%4]
}

// RandomBits16 returns the 16 bits that random_bits16(seed, index) means: of the
// 128 bits of the block at counter index/8 the index%8-th sixteen, lowest first.
func RandomBits16(seed, index uint64) uint16 {
	word := Philox4x32(index/8, seed)[index%8/2]
	return uint16(word >> (16 * (index % 2)))
}

func philoxRow(seed, index, _ int64) int64 { return int64(RandomBits(uint64(seed), uint64(index))) }

func philox16Row(seed, index, _ int64) int64 { return int64(RandomBits16(uint64(seed), uint64(index))) }
