package fusec_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/fusec/fusec"
	"github.com/fusec/fusec/codegen"
	"github.com/fusec/fusec/fuse"
	"github.com/fusec/fusec/ir"
)

// TestSlicesCompile compiles what becomes of sums of products: every size class of
// the plain ones, the first and the last of the others.
func TestSlicesCompile(t *testing.T) {
	if testing.Short() {
		t.Skip("the examples do")
	}
	n := fusec.RequireNVRTC(t)
	var units []unit
	add := func(label, src, arch string, ends bool) {
		_, plan, p := program(t, label+".fuse", src, arch)
		for i, launch := range p.Launches { // 64-bit offsets change no more than types
			for j := range launch.Variants {
				if plan.Launched()[i].Variants[j].Schedule.Index64 {
					launch.Variants = launch.Variants[:j]
					break
				}
			}
			p.Launches[i] = launch
		}
		units = append(units, unitsOf(label, plan, p, arch, ends)...)
	}
	for _, dtype := range []string{"f32", "bf16"} {
		add("plain "+dtype, strings.ReplaceAll(fusec.ProductBodies["plain"], "T[", dtype+"["), "sm_90a", false)
	}
	for i, name := range slices.Sorted(maps.Keys(fusec.ProductBodies)) {
		dtype := []string{"bf16", "f32", "f64", "f16"}[i%4]
		add(name+" "+dtype, strings.ReplaceAll(fusec.ProductBodies[name], "T[", dtype+"["), []string{"sm_90a", "sm_80"}[i%2], true)
	}
	for i, name := range slices.Sorted(maps.Keys(fusec.QuantisedProducts)) {
		add(name, fusec.QuantisedProducts[name], []string{"sm_90a", "sm_80"}[i%2], true)
	}
	for i, name := range slices.Sorted(maps.Keys(fusec.MixedProducts)) {
		add("mixed "+name, "graph g"+strings.ReplaceAll(fusec.MixedProducts[name], "T[", "i8["), []string{"sm_90a", "sm_80"}[i%2], true)
	}
	add("tf32", "@tf32 "+strings.ReplaceAll(fusec.ProductBodies["b transposed"], "T[", "f32["), "sm_90a", false)
	for _, name := range []string{"plain", "ffn"} {
		add("tf32 "+name, fusec.TF32Graph(name), "sm_90a", false)
		add("tf32 "+name, fusec.TF32Graph(name), "sm_80", true)
	}
	for _, name := range []string{"e5m2 shared", "i8 bt"} {
		add(name, fusec.ByteGraph(name), "sm_90a", false)
	}
	add("e4m3 plain", fusec.ByteGraph("e4m3 plain"), "sm_80", true)
	compileAll(t, n, units)
}

// TestLargeTilesCompile compiles large products in f32 under every tile that tuning may
// choose.
func TestLargeTilesCompile(t *testing.T) {
	n := fusec.RequireNVRTC(t)
	const src = "graph g(a: f32[M, K], b: f32[K, N], c: f32[N]) -> (y: f32[M, N]) { y = relu(a @ b + c) }"
	var units []unit
	for _, of := range []struct {
		arch    string
		columns int64
	}{{"sm_90a", 4096}, {"sm_80", 4096}, {"sm_90a", 8192}} {
		arch, sizes := of.arch, map[string]int64{"M": 4096, "N": 4096, "K": of.columns}
		g, base, _ := program(t, "g.fuse", src, arch)
		device, err := ir.DeviceNamed(arch)
		require.NoError(t, err)
		for _, choice := range fuse.Candidates(base, base.Kernels[0], sizes) {
			if choice.Variant != choice.Class {
				continue
			}
			plan, err := fuse.Plan(g, fuse.Options{Device: device, Choices: []fuse.Choice{choice}})
			require.NoError(t, err)
			p, err := codegen.Generate(plan)
			require.NoError(t, err)
			for i, v := range plan.Kernels[0].Variants {
				if v.Schedule == choice.Schedule {
					at := p.Launches[0].Variants[i].Unit
					units = append(units, unit{label: fmt.Sprintf("%s %+v", arch, v.Schedule), source: codegen.CUDA(p, at), arch: arch})
					break
				}
			}
		}
	}
	require.NotEmpty(t, units)
	compileAll(t, n, units)
}
