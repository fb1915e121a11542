//===- TkDialect.cpp - registration of the tensor-level dialect -----------===//
#include "dialects/tk/TkDialect.h"
#include "dialects/tk/TkMeshOps.h"
#include "dialects/tk/TkScheduleOps.h"

#include "mlir/IR/Builders.h"
#include "mlir/IR/DialectImplementation.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace tk;

// A name and the flags that are set, in any order: `"x", strided = true, inout = true`.
static ParseResult parseParam(AsmParser &parser, std::string &name, bool &strided, bool &inout) {
  if (parser.parseString(&name))
    return failure();
  while (succeeded(parser.parseOptionalComma())) {
    bool isStrided = succeeded(parser.parseOptionalKeyword("strided"));
    if (!isStrided && parser.parseKeyword("inout"))
      return failure();
    bool value = succeeded(parser.parseOptionalEqual())
                     ? succeeded(parser.parseOptionalKeyword("true"))
                     : true;
    if (!value && parser.parseKeyword("false"))
      return failure();
    (isStrided ? strided : inout) = value;
  }
  return success();
}

static void printParam(AsmPrinter &printer, StringRef name, bool strided, bool inout) {
  printer.printString(name);
  if (strided)
    printer << ", strided = true";
  if (inout)
    printer << ", inout = true";
}

#include "dialects/tk/TkDialect.cpp.inc"
#include "dialects/tk/TkEnums.cpp.inc"

#define GET_ATTRDEF_CLASSES
#include "dialects/tk/TkAttributes.cpp.inc"

#define GET_OP_CLASSES
#include "dialects/tk/TkOps.cpp.inc"
#undef GET_OP_CLASSES
#define GET_OP_CLASSES
#include "dialects/tk/TkScheduleOps.cpp.inc"
#undef GET_OP_CLASSES
#define GET_OP_CLASSES
#include "dialects/tk/TkMeshOps.cpp.inc"

void TkDialect::initialize() {
  addAttributes<
#define GET_ATTRDEF_LIST
#include "dialects/tk/TkAttributes.cpp.inc"
      >();
  addOperations<
#define GET_OP_LIST
#include "dialects/tk/TkOps.cpp.inc"
      >();
  addOperations<
#define GET_OP_LIST
#include "dialects/tk/TkScheduleOps.cpp.inc"
      >();
  addOperations<
#define GET_OP_LIST
#include "dialects/tk/TkMeshOps.cpp.inc"
      >();
}
