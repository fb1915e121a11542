//===- TkGpuCountOps.td - last-block reductions ---------------------------===//
#ifndef TK_DIALECTS_TKGPU_TKGPUCOUNTOPS_TD
#define TK_DIALECTS_TKGPU_TKGPUCOUNTOPS_TD

include "dialects/tkgpu/TkGpuDialect.td"
include "mlir/Interfaces/SideEffectInterfaces.td"

def TkGpu_CountersOp : Op<TkGpu_Dialect, "counters", [MemoryEffects<[MemAlloc]>]> {
  let summary = "Allocate `count` atomic counters that are 0 between launches";
  let description = [{
    The operation is `tkgpu.counter` for several groups of blocks. It stands in a `tk.kernel`, and
    the counters are an argument of one launch, which leaves them at 0.

    ```mlir
    %counters = tkgpu.counters %groups : tensor<?xi32>
    ```
  }];
  let arguments = (ins Index:$count);
  let results = (outs 1DTensorOf<[I32]>:$counters);
  let assemblyFormat = "$count attr-dict `:` type($counters)";
}

def TkGpu_LastBlockOp : Op<TkGpu_Dialect, "last_block", [MemoryEffects<[MemRead, MemWrite]>]> {
  let summary = "Test whether this thread block is the last of its group (last-block reduction)";
  let description = [{
    Each of the `count` blocks of a group executes the operation once with the same `group`. The
    result is true in the block that comes last, and false in the others. The operation
    synchronises the threads of the block, and all of them get the same result. `counters` has a
    counter for each group, which returns to 0 after the last block.

    In the last block, the values that other blocks of the group wrote to `buffers` before the
    operation are visible after it. The contents of `buffers` change while the function runs, so
    that the emitter does not declare them `__restrict__`.

    ```mlir
    %last = tkgpu.last_block %counters[%group] of %count sees(%parts)
        : (!tkgpu.buffer<i32>, index, index, !tkgpu.buffer<f32>) -> i1
    ```
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
