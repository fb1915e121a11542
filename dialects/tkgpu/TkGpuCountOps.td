//===- TkGpuCountOps.td - blocks that count themselves --------------------===//
#ifndef TK_DIALECTS_TKGPU_TKGPUCOUNTOPS_TD
#define TK_DIALECTS_TKGPU_TKGPUCOUNTOPS_TD

include "dialects/tkgpu/TkGpuDialect.td"
include "mlir/Interfaces/SideEffectInterfaces.td"

def TkGpu_CountersOp : Op<TkGpu_Dialect, "counters", [MemoryEffects<[MemAlloc]>]> {
  let summary = "Numbers in memory that are 0 whenever no launch uses them";
  let description = "Of groups of blocks, as tkgpu.counter is one of all.";
  let arguments = (ins Index:$count);
  let results = (outs 1DTensorOf<[I32]>:$counters);
  let assemblyFormat = "$count attr-dict `:` type($counters)";
}

def TkGpu_LastBlockOp : Op<TkGpu_Dialect, "last_block", [MemoryEffects<[MemRead, MemWrite]>]> {
  let summary = "Is this block the last of `count` that come here with this `group`?";
  let description = [{
    What the others wrote to `buffers` before they came here is visible to the last one behind this:
    these do not stay as they are while the function runs. All threads of the block meet, and all
    know the answer. `counters` has a number for each group, which begins again after the last block.
  }];
  let arguments = (ins TkGpu_BufferType:$counters, Index:$group, Index:$count,
                       Variadic<TkGpu_BufferType>:$buffers);
  let results = (outs I1:$result);
  let assemblyFormat = [{
    $counters `[` $group `]` `of` $count `sees` `(` $buffers `)` attr-dict `:`
    functional-type(operands, results)
  }];
}

#endif // TK_DIALECTS_TKGPU_TKGPUCOUNTOPS_TD
