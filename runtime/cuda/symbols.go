package cuda

// The driver's entry points, by the names they are exported under: the header
// hides the version suffixes behind macros, and the unsuffixed symbols are older
// functions with other arguments.
const (
	symInit = iota
	symDriverGetVersion
	symGetErrorName
	symGetErrorString
	symDeviceGetCount
	symDeviceGet
	symDeviceGetName
	symDeviceGetUUID
	symDeviceTotalMem
	symDeviceGetAttribute
	symPrimaryCtxRetain
	symPrimaryCtxRelease
	symCtxSetCurrent
	symCtxGetDevice
	symCtxSynchronize
	symCtxResetPersistingL2
	symMemAlloc
	symMemFree
	symMemAllocAsync
	symMemFreeAsync
	symGetDefaultMemPool
	symMemPoolSetAttribute
	symMemPoolTrimTo
	symMemHostAlloc
	symMemFreeHost
	symMemcpyHtoD
	symMemcpyDtoH
	symMemcpyDtoD
	symMemcpyHtoDAsync
	symMemcpyDtoHAsync
	symMemcpyDtoDAsync
	symMemsetD8Async
	symMemsetD32Async
	symMemGetInfo
	symStreamCreate
	symStreamDestroy
	symStreamSynchronize
	symStreamQuery
	symStreamWaitEvent
	symStreamBeginCapture
	symStreamEndCapture
	symEventCreate
	symEventDestroy
	symEventRecord
	symEventSynchronize
	symEventQuery
	symEventElapsedTime
	symModuleLoadDataEx
	symModuleUnload
	symModuleGetFunction
	symModuleGetGlobal
	symFuncGetAttribute
	symFuncSetAttribute
	symLaunchKernel
	symLaunchKernelEx
	symMaxActiveBlocks
	symMaxActiveClusters
	symGraphCreate
	symGraphAddKernelNode
	symGraphKernelNodeSetAttribute
	symGraphAddDependencies
	symGraphInstantiate
	symGraphDestroy
	symGraphGetNodes
	symGraphLaunch
	symGraphUpload
	symGraphExecUpdate
	symGraphExecKernelNodeSetParams
	symGraphExecDestroy
	symTensorMapEncodeTiled
	symCount
)

var driverSymbols = [symCount]string{
	symInit:                         "cuInit",
	symDriverGetVersion:             "cuDriverGetVersion",
	symGetErrorName:                 "cuGetErrorName",
	symGetErrorString:               "cuGetErrorString",
	symDeviceGetCount:               "cuDeviceGetCount",
	symDeviceGet:                    "cuDeviceGet",
	symDeviceGetName:                "cuDeviceGetName",
	symDeviceGetUUID:                "cuDeviceGetUuid_v2",
	symDeviceTotalMem:               "cuDeviceTotalMem_v2",
	symDeviceGetAttribute:           "cuDeviceGetAttribute",
	symPrimaryCtxRetain:             "cuDevicePrimaryCtxRetain",
	symPrimaryCtxRelease:            "cuDevicePrimaryCtxRelease_v2",
	symCtxSetCurrent:                "cuCtxSetCurrent",
	symCtxGetDevice:                 "cuCtxGetDevice",
	symCtxSynchronize:               "cuCtxSynchronize",
	symCtxResetPersistingL2:         "cuCtxResetPersistingL2Cache",
	symMemAlloc:                     "cuMemAlloc_v2",
	symMemFree:                      "cuMemFree_v2",
	symMemAllocAsync:                "cuMemAllocAsync",
	symMemFreeAsync:                 "cuMemFreeAsync",
	symGetDefaultMemPool:            "cuDeviceGetDefaultMemPool",
	symMemPoolSetAttribute:          "cuMemPoolSetAttribute",
	symMemPoolTrimTo:                "cuMemPoolTrimTo",
	symMemHostAlloc:                 "cuMemHostAlloc",
	symMemFreeHost:                  "cuMemFreeHost",
	symMemcpyHtoD:                   "cuMemcpyHtoD_v2",
	symMemcpyDtoH:                   "cuMemcpyDtoH_v2",
	symMemcpyDtoD:                   "cuMemcpyDtoD_v2",
	symMemcpyHtoDAsync:              "cuMemcpyHtoDAsync_v2",
	symMemcpyDtoHAsync:              "cuMemcpyDtoHAsync_v2",
	symMemcpyDtoDAsync:              "cuMemcpyDtoDAsync_v2",
	symMemsetD8Async:                "cuMemsetD8Async",
	symMemsetD32Async:               "cuMemsetD32Async",
	symMemGetInfo:                   "cuMemGetInfo_v2",
	symStreamCreate:                 "cuStreamCreate",
	symStreamDestroy:                "cuStreamDestroy_v2",
	symStreamSynchronize:            "cuStreamSynchronize",
	symStreamQuery:                  "cuStreamQuery",
	symStreamWaitEvent:              "cuStreamWaitEvent",
	symStreamBeginCapture:           "cuStreamBeginCapture_v2",
	symStreamEndCapture:             "cuStreamEndCapture",
	symEventCreate:                  "cuEventCreate",
	symEventDestroy:                 "cuEventDestroy_v2",
	symEventRecord:                  "cuEventRecord",
	symEventSynchronize:             "cuEventSynchronize",
	symEventQuery:                   "cuEventQuery",
	symEventElapsedTime:             "cuEventElapsedTime",
	symModuleLoadDataEx:             "cuModuleLoadDataEx",
	symModuleUnload:                 "cuModuleUnload",
	symModuleGetFunction:            "cuModuleGetFunction",
	symModuleGetGlobal:              "cuModuleGetGlobal_v2",
	symFuncGetAttribute:             "cuFuncGetAttribute",
	symFuncSetAttribute:             "cuFuncSetAttribute",
	symLaunchKernel:                 "cuLaunchKernel",
	symLaunchKernelEx:               "cuLaunchKernelEx",
	symMaxActiveBlocks:              "cuOccupancyMaxActiveBlocksPerMultiprocessor",
	symMaxActiveClusters:            "cuOccupancyMaxActiveClusters",
	symGraphCreate:                  "cuGraphCreate",
	symGraphAddKernelNode:           "cuGraphAddKernelNode_v2",
	symGraphKernelNodeSetAttribute:  "cuGraphKernelNodeSetAttribute",
	symGraphAddDependencies:         "cuGraphAddDependencies_v2",
	symGraphInstantiate:             "cuGraphInstantiateWithFlags",
	symGraphDestroy:                 "cuGraphDestroy",
	symGraphGetNodes:                "cuGraphGetNodes",
	symGraphLaunch:                  "cuGraphLaunch",
	symGraphUpload:                  "cuGraphUpload",
	symGraphExecUpdate:              "cuGraphExecUpdate_v2",
	symGraphExecKernelNodeSetParams: "cuGraphExecKernelNodeSetParams_v2",
	symGraphExecDestroy:             "cuGraphExecDestroy",
	symTensorMapEncodeTiled:         "cuTensorMapEncodeTiled",
}
