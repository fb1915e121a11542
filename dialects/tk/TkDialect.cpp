//===- TkDialect.cpp - registration of the tensor-level dialect -----------===//
#include "dialects/tk/TkDialect.h"

#include "mlir/IR/Builders.h"
#include "mlir/IR/DialectImplementation.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace tk;

#include "dialects/tk/TkDialect.cpp.inc"
#include "dialects/tk/TkEnums.cpp.inc"

#define GET_ATTRDEF_CLASSES
#include "dialects/tk/TkAttributes.cpp.inc"

#define GET_OP_CLASSES
#include "dialects/tk/TkOps.cpp.inc"

void TkDialect::initialize() {
  addAttributes<
#define GET_ATTRDEF_LIST
#include "dialects/tk/TkAttributes.cpp.inc"
      >();
  addOperations<
#define GET_OP_LIST
#include "dialects/tk/TkOps.cpp.inc"
      >();
}
