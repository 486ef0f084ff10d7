package simtest

import (
	"testing"

	"github.com/fusec/fusec/runtime/internal/fakecupti"
)

// CUPTI gives the process a CUPTI that counts without hardware, for as long as the test runs: metrics whose names
// begin with dram__ or sm__, each as 1000 times the number of the kernel, from 0, and the length of its name. With
// deny, it says that this user may not count.
func CUPTI(t *testing.T, deny bool) {
	flag := ""
	if deny {
		flag = "-DDENIED"
	}
	t.Setenv("FUSEC_CUPTI", fakecupti.New(t, flag))
}
