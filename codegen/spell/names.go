package spell

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/fusec/fusec/codegen/skeleton"
)

// reserved are the words that must not be names of variables: keywords, what the compiler
// defines, the functions, types and macros of the prelude and of the operators' spellings, and
// the variables of the kernels' own skeleton. They are gathered when first needed, because a
// start that takes its kernels from the cache spells nothing.
var reserved = sync.OnceValue(reservedWords)

const keywords = `alignas alignof and asm auto bool break case catch char class const constexpr continue decltype
	default delete do double else enum explicit export extern false float for friend goto if inline int long mutable
	namespace new noexcept not nullptr operator or private protected public register return short signed sizeof
	static struct switch template this throw true try typedef typeid typename union unsigned using virtual void
	volatile wchar_t while xor
	wgmma
	threadIdx blockIdx blockDim gridDim warpSize main clock assert printf malloc free memcpy memset
	INDEX THREADS VECTOR ROW_THREADS COL_THREADS ITEMS CLUSTER MIN_BLOCKS
	row col lane lanes group c t u v g n base cols rows step first outer vectors live stride rank arrived fetch next_rows columns share start end own bar
	REGISTER_CHUNKS CHUNK_BYTES chunks ring_places row_1 row_2 fetch_row prefetched fetch_chunk fetch_place free_places last_tile more claimed tile_slots tile_warp
	stages row_bytes run parity meeting meetings to ROWS_SHARED next_columns ACROSS ALONG
	index near far small signbit y0 y1 j0 j1 jn yn gamma
	TILE_M TILE_N TILE_K STAGES tiles inside inside_m inside_n ahead fetch_stage GROUP FRAGS_M FRAGS_N Half Tile TileA TileB tile batch tiles_m tiles_n group_top group_rows
	extent_m extent_n extent_k origin_m origin_n origin_k at_m at_n at_k at_row at_col tile_a tile_b next_a next_b
	copysign get put real word column shared block Block Key tasks
	fetch_a fetch_b tiles_p tiles_q strip origin_p origin_q at_p at_q turned_rows turn_square turn_vector turn_piece PITCH SKEW BATCH turn chunk element sums stage more warp_m warp_n frag_m frag_n part
	queries keys values fetch_queries fetch_keys fetch_values Queries Keys Values Stream Panel TILE_V SCALE GROUPS GIVEN TAKEN LINE KEY_BYTES VALUE_BYTES QUERY_BYTES DEPTH_SLABS VALUE_SLABS barriers role slab phase used used_phase
	query_here key_here value_here key_free value_free own_queries weights tma_queries tma_keys tma_values weights L2_ELEMENTS
	extent_width extent_depth at_width at_depth origin panel line column elements visible whole next logit logit_whole
	PRODUCTS SCORES Weights also also_value also_weights Brought brought numbers number_0 number_1 number_2 number_3 of_query_0 of_query_1 outer outers key_outer held_0 held_1 held hold_queries start_scores finish_scores query_free query_phase number round product STAGE_BYTES multiply_scores tma_queries_1 tma_keys_1 weight_of weight_whole score_1 depth_1 at_depth_1 extent_depth_1 fetch_queries_1 fetch_keys_1
	factor_of score key value top total none acc factor sum stream batches together group_size in_group frag span place OWN_N WARPS_M WARPS_N warp
	ring steps all_steps first_step segment_step steps_at in_turn SPLIT_K PEERS shared warpgroup place full block_m staging last block chunk_n fragment pair item at_row at_column pass outer_n
	TILE_N_EACH Run TURNS CHUNK VECTORS PASSES LINES
	Element Total Parts parts totals after_tiles block split slice slices every_tile even odd begin_k end_k next_k stage sum_line sum_at total CHUNKS TURN PART_M PART_N
	PIECES_A PIECES_B TURNS_A TURNS_B piece tile_row tile_k values put_a put_b Sums lane_outer
	planes taps copy_planes channel spot slot Places HaloParts HaloFMA CHANNELS COVERED PLANE
	from any policy both part_m turn_parity side inside_tile whole_k run_k run_end run_whole kept kept_at placed placed_at settled table
	Kept TileTable TensorMap Barrier Word LANES MERGED ROOM ROWS COLUMNS RUN SLAB STAGED BLOCKS_M OWN_N_EACH SIDES BYTES_B PARTS_N PER_LINE PER_ROW
	part done place ahead predecessor chain predecessor_block chain_block ends own CHAIN LOOK_BACK
	COPIER COPIER_REGISTERS MULTIPLIER MULTIPLIERS MULTIPLIER_REGISTERS
	BLOCK_ROWS place_of place_in listed list all room there left marks lines warps first_vector bits gathered GATHERED PARTS KEYS CHUNK_KEYS LEAST HALF WORDS low high team active end size parts places at PLACES EACH Place
	Listed ALONE alone behind all_bins SLICE BIN_LEAST crowded teams job some_shared marked rounds team_states
	RUNNING PREFETCH each of_lane same active found count turn rank begin places_listed ROOM STEP below ring ring_places counts found mine from end next fold
	rows_a ROW_WIDTH WARPS PIECE STEP WIDTH LINES r state FOLD lane_row first_k fragment_x fragment_w words_x sums_w step_w upper row_x row_w warp sub few factor base fetch multiply_step Field`

func reservedWords() map[string]bool {
	// Names that are called, instantiated or initialised, declared as a type, or defined as a
	// macro. Plain variables of the prelude's functions do not matter.
	defined := regexp.MustCompile(`([A-Za-z_]\w*)[(<{]|(?:struct|#define) (\w+)`)
	out := map[string]bool{}
	for _, w := range strings.Fields(keywords) {
		out[w] = true
	}
	texts := skeleton.All()
	for _, s := range spellings {
		texts = append(texts, s.f32, s.f64, s.ints, s.index, s.fast)
	}
	for _, text := range texts {
		for _, m := range defined.FindAllStringSubmatch(text, -1) {
			out[m[1]+m[2]] = true
		}
	}
	return out
}

// Reserved reports whether a word is one that Identifier never gives.
func Reserved(word string) bool {
	own := func(suffix string) bool { return strings.HasSuffix(word, suffix) }
	return reserved()[word] || slices.ContainsFunc(ownSuffixes, own)
}

// ownSuffixes end names that codegen makes from other names: the parameter of a symbol, the
// rest of a position, the value before a step.
var ownSuffixes = []string{"_size", "_outer", "_old", "_piece"}

// Identifier makes a C name of a name of the program.
func Identifier(name string) string {
	var b strings.Builder
	last := rune(0)
	for i, c := range name {
		if !(c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || i > 0 && c >= '0' && c <= '9') {
			c = '_'
		}
		if c != '_' || last != '_' { // names with two underscores in a row are reserved for the compiler
			b.WriteRune(c)
		}
		last = c
	}
	text := b.String()
	if text == "" || text[0] == '_' {
		text = "n" + text
	}
	if Reserved(text) {
		text += "_"
	}
	return text
}

// Namer hands out unique names.
type Namer map[string]int

func (n Namer) Fresh(name string) string {
	name = Identifier(name)
	for {
		n[name]++
		if n[name] == 1 {
			return name
		}
		name = Identifier(fmt.Sprintf("%s_%d", name, n[name]))
	}
}
