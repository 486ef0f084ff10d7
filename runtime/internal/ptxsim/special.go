package ptxsim

// specials are the special registers, in the order of warp.fillSpecials.
var specials = []string{
	"%tid.x", "%tid.y", "%tid.z", "%ntid.x", "%ntid.y", "%ntid.z",
	"%ctaid.x", "%ctaid.y", "%ctaid.z", "%nctaid.x", "%nctaid.y", "%nctaid.z",
	"%laneid", "%warpid", "%nwarpid", "%smid", "%nsmid",
	"%cluster_ctaid.x", "%cluster_ctaid.y", "%cluster_ctaid.z",
	"%cluster_nctaid.x", "%cluster_nctaid.y", "%cluster_nctaid.z",
	"%clusterid.x", "%clusterid.y", "%clusterid.z", "%nclusterid.x", "%nclusterid.y", "%nclusterid.z",
	"%cluster_ctarank", "%cluster_nctarank",
	"%lanemask_eq", "%lanemask_lt", "%lanemask_le", "%lanemask_gt", "%lanemask_ge",
	"%clock", "%clock64", "%globaltimer", "%globaltimer_lo", "%dynamic_smem_size", "WARP_SZ",
}

// multiprocessors is the number that kernels are told the device has.
const multiprocessors = 4

// special is the value of a special register for a lane of a warp. Clocks stand still.
func (w *warp) special(at, lane int) uint64 {
	c, l := w.cta, w.cta.cluster.launch
	thread := uint32(w.index*warpSize + lane)
	tid := [3]uint32{thread % l.Block[0], thread / l.Block[0] % l.Block[1], thread / l.Block[0] / l.Block[1]}
	var in, of, nth [3]uint32 // place in the cluster, its index, their number
	for i := range 3 {
		in[i], of[i], nth[i] = c.id[i]%l.Cluster[i], c.id[i]/l.Cluster[i], l.Grid[i]/l.Cluster[i]
	}
	eq := uint32(1) << lane
	values := [...]uint32{
		tid[0], tid[1], tid[2], l.Block[0], l.Block[1], l.Block[2],
		c.id[0], c.id[1], c.id[2], l.Grid[0], l.Grid[1], l.Grid[2],
		uint32(lane), uint32(w.index), uint32(len(c.warps)), 0, multiprocessors,
		in[0], in[1], in[2],
		l.Cluster[0], l.Cluster[1], l.Cluster[2],
		of[0], of[1], of[2], nth[0], nth[1], nth[2],
		uint32(c.rank), uint32(len(c.cluster.ctas)),
		eq, eq - 1, eq | (eq - 1), ^(eq | (eq - 1)), ^(eq - 1),
		0, 0, 0, 0, uint32(l.Shared), warpSize,
	}
	return uint64(values[at])
}
