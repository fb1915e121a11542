//===- Shipped.cpp - the networks of examples/networks by name ------------===//
#include "passes/network/Network.h"

#include "llvm/ADT/StringSwitch.h"

namespace tk::network {

static constexpr llvm::StringLiteral superpod =
#include "passes/network/h100-superpod.inc"
    ;
static constexpr llvm::StringLiteral node =
#include "passes/network/h100-node.inc"
    ;
static constexpr llvm::StringLiteral nodeOfH200 =
#include "passes/network/h200-node.inc"
    ;
static constexpr llvm::StringLiteral pair =
#include "passes/network/h200-pair.inc"
    ;

std::optional<llvm::StringRef> shippedNetwork(llvm::StringRef name) {
  return llvm::StringSwitch<std::optional<llvm::StringRef>>(name)
      .Case("h100-superpod", superpod)
      .Case("h100-node", node)
      .Case("h200-node", nodeOfH200)
      .Case("h200-pair", pair)
      .Default(std::nullopt);
}

} // namespace tk::network
