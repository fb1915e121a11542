//===- TkGpuLayout.td - the layout of a tile ------------------------------===//
//
// Included by TkGpuDialect.td after the definition of TkGpu_Dialect. The generated classes need
// "dialects/tkgpu/TkGpuLayoutBit.h" before them.
//
//===----------------------------------------------------------------------===//
#ifndef TK_DIALECTS_TKGPU_TKGPULAYOUT_TD
#define TK_DIALECTS_TKGPU_TKGPULAYOUT_TD

include "mlir/IR/AttrTypeBase.td"
include "mlir/IR/TensorEncoding.td"

def TkGpu_LayoutAttr : AttrDef<TkGpu_Dialect, "Layout",
    [DeclareAttrInterfaceMethods<VerifiableTensorEncoding>]> {
  let mnemonic = "layout";
  let summary = "the map from register, lane and warp to the coordinates of a tile";
  let description = [{
    A layout is a linear map over bits. Each bit of the register number, of the lane (0 to 31) and
    of the warp number has a coordinate vector. The coordinate of an element is the xor of the
    vectors of all bits that are set. A vector is a power of two on one axis, or zero. A bit with a
    zero vector replicates: both of its values lead to the same element.

    The following layout is the 32x8 accumulator of mma.m16n8k16 over two warps. Register 3 of lane
    5 in warp 1 holds element (16 + 8 + 1, 2 + 1) = (25, 3).

    ```mlir
    #tkgpu.layout<register = [[0, 1], [8, 0]], lane = [[0, 2], [0, 4], [1, 0], [2, 0], [4, 0]],
        warp = [[16, 0]]>
    ```

    With `held = n` a thread has only the first n registers. No operation uses the elements of the
    other registers, such as those beyond a row of 5120 elements in a tile of 8192.

    TkGpuLayout.h has constructors for blocked tiles, for matrix fragments and for slices, which
    are the layouts of reduced tiles.

    The verifier requires:

    - 5 lane vectors, at most 10 register vectors and at most 9 warp vectors,
    - register vectors that are not zero; lane and warp vectors may be zero,
    - each element once: on each axis the steps are all powers of two below the extent,
    - `held` below the number of registers, and only with register vectors along one axis,
    - a tile of the layout's shape.
  }];
  let parameters = (ins
    "unsigned":$rank,
    ArrayRefParameter<"::tk::gpu::LayoutBit">:$registerBits,
    ArrayRefParameter<"::tk::gpu::LayoutBit">:$laneBits,
    ArrayRefParameter<"::tk::gpu::LayoutBit">:$warpBits,
    DefaultValuedParameter<"unsigned", "0", "registers that a thread has; 0: all">:$held);
  let builders = [AttrBuilder<(ins "unsigned":$rank,
      "::llvm::ArrayRef<::tk::gpu::LayoutBit>":$registerBits,
      "::llvm::ArrayRef<::tk::gpu::LayoutBit>":$laneBits,
      "::llvm::ArrayRef<::tk::gpu::LayoutBit>":$warpBits), [{
    return $_get($_ctxt, rank, registerBits, laneBits, warpBits, 0u);
  }]>];
  let hasCustomAssemblyFormat = 1;
  let genVerifyDecl = 1;
  let extraClassDeclaration = [{
    /// The number of elements of the tile in a thread.
    unsigned getNumRegisters() {
      return getHeld() != 0 ? getHeld() : 1u << getRegisterBits().size();
    }
    unsigned getNumWarps() { return 1u << getWarpBits().size(); }
    /// The shape of the tile that this layout distributes.
    ::llvm::SmallVector<int64_t> getTileShape();
    /// What register `reg` adds to a thread's coordinate.
    ::llvm::SmallVector<int64_t> getRegisterOffset(unsigned reg);
    /// The coordinate of the element in register `reg` of lane `lane` in warp `warp`.
    ::llvm::SmallVector<int64_t> getCoordinate(unsigned reg, unsigned lane, unsigned warp);
    /// The register whose element is at `offset` from the thread's coordinate, if there is one.
    std::optional<unsigned> getRegisterAt(::llvm::ArrayRef<int64_t> offset);
    /// A mask of the bits of the lane (warp) number whose vector is zero. One thread of each group
    /// of replicas is the owner: the one with all of these bits zero.
    unsigned getReplicatedLaneMask();
    unsigned getReplicatedWarpMask();
    /// The number of neighbouring elements along `axis` in the consecutive registers 0 .. n-1.
    int64_t getVectorWidth(unsigned axis);
  }];
}

#endif // TK_DIALECTS_TKGPU_TKGPULAYOUT_TD
