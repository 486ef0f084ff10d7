package spell

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/fusec/fusec/codegen/skeleton"
	"github.com/fusec/fusec/ir"
	"github.com/fusec/fusec/runtime/cuda"
)

// TestHopperPrelude compiles every wrapper in the forms that kernels use, and
// wgmma at its narrowest, an odd and its widest size.
func TestHopperPrelude(t *testing.T) {
	n := requireNVRTC(t)
	var text strings.Builder
	text.WriteString("#define INDEX int\n#define THREADS 384\n" + skeleton.Text("prelude", "hopper"))
	for _, width := range []int{8, 24, 64, 256} {
		for _, half := range []ir.DType{ir.BF16, ir.F16} {
			text.WriteString(WGMMA(width, half, false))
			text.WriteString(WGMMA(width, half, true))
		}
		text.WriteString(WGMMA(width, ir.F32, false))
		text.WriteString(WGMMA(width, ir.F32, true))
	}
	text.WriteString(`
template <int N, typename Half> DEVICE void products(float *out, unsigned at) {
    float d[N / 2] = {};
    unsigned a[4] = {at, at + 1, at + 2, at + 3};
    for (int i = 0; i < 4; ++i) asm volatile("" : "+r"(a[i]));
    wgmma_hold(d);
    wgmma_fence();
    wgmma<0, 1>(d, descriptor_k(at), descriptor_mn(at, 8192), false, Half{});
    wgmma<1, 0>(d, descriptor_mn(at, 8192), descriptor_step(descriptor_k(at), 32), true, Half{});
    wgmma<0>(d, a, descriptor_k(at), true, Half{});
    wgmma_commit();
    wgmma_wait<0>();
    wgmma_hold(d);
    for (int i = 0; i < N / 2; ++i) out[i * 384 + threadIdx.x] += d[i];
}
template <int N> DEVICE void products_tf32(float *out, unsigned at) {
    float d[N / 2] = {};
    unsigned a[4] = {at, at + 1, at + 2, at + 3};
    for (int i = 0; i < 4; ++i) asm volatile("" : "+r"(a[i]));
    wgmma_hold(d);
    wgmma_fence();
    wgmma<0, 0>(d, descriptor_k(at), descriptor_k(at), false, float{});
    wgmma<0>(d, a, descriptor_k(at), true, float{});
    wgmma_commit();
    wgmma_wait<0>();
    wgmma_hold(d);
    for (int i = 0; i < N / 2; ++i) out[i * 384 + threadIdx.x] += d[i];
}
extern "C" __global__ void __launch_bounds__(384, 1) wrappers(const __grid_constant__ TensorMap m, float *out) {
    extern __shared__ __align__(1024) unsigned char shared[];
    __shared__ Barrier bars[2];
    const unsigned at = shared_address(shared), bar = shared_address(bars);
    if (threadIdx.x == 0) {
        map_prefetch(m);
        barrier_init(bar, 2);
        barrier_init(bar + 8, 1);
        barriers_publish();
    }
    cluster_arrive();
    cluster_wait();
    if (uniform(threadIdx.x / 128) == 0) {
        registers_give<40>();
        if (threadIdx.x == 0) {
            barrier_expect(bar, 1024);
            tma_load(at, m, bar, 0, 1);
            tma_load(at, m, bar, 0, 1, 2);
            tma_load(at, m, bar, 0, 1, 2, 3);
            tma_load(at, m, bar, 0, 1, 2, 3, 4);
            tma_load_multicast(3, at, m, bar, 0, 1);
            tma_load_multicast(3, at, m, bar, 0, 1, 2);
            tma_load_multicast(3, at, m, bar, 0, 1, 2, 3);
            tma_load_multicast(3, at, m, bar, 0, 1, 2, 3, 4);
            barrier_arrive(bar);
        }
    } else {
        registers_take<232>();
        barrier_wait(bar, 0);
        products<256, bf16>(out, at);
        products<24, f16>(out, at);
        products<8, bf16>(out, at);
        products_tf32<64>(out, at);
        products_tf32<24>(out, at);
        products_tf32<8>(out, at);
        barrier_arrive_at(bar + 8, 1);
        store_matrices(at + swizzled(threadIdx.x * 16), 1, 2, 3, 4);
        store_matrices_transposed(at, 1, 2, 3, 4);
        shared_publish();
        named_sync(1, 256);
        if (threadIdx.x == 128) {
            tma_store(m, at, 0, 1);
            tma_store(m, at, 0, 1, 2);
            tma_store(m, at, 0, 1, 2, 3);
            stores_commit();
            stores_wait_read<0>();
            stores_wait<0>();
        }
        named_arrive(2, 256);
    }
    cluster_arrive();
    cluster_wait();
}
`)
	options := []string{"--gpu-architecture=sm_90a", "--ptxas-options=-v"}
	r, err := n.Compile(t.Context(), cuda.Request{Name: "hopper.cu", Source: text.String(), Options: options})
	require.NoError(t, err)
	assert.Contains(t, r.Log, "0 bytes spill stores")
	for _, complaint := range []string{"warning", "C75", "Potential Performance Loss"} {
		assert.NotContains(t, r.Log, complaint)
	}
}
