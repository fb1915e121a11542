//===- TkGpuAttributes.td - all attributes, for one parser ----------------===//
#ifndef TK_DIALECTS_TKGPU_TKGPUATTRIBUTES_TD
#define TK_DIALECTS_TKGPU_TKGPUATTRIBUTES_TD

include "dialects/tkgpu/TkGpuOps.td"
include "dialects/tkgpu/TkGpuPlan.td"

#endif // TK_DIALECTS_TKGPU_TKGPUATTRIBUTES_TD
