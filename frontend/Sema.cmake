add_library(tk_frontend STATIC
  Bounds.cpp
  BoundsExtremes.cpp
  BoundsProver.cpp
  FactorIndices.cpp
  GradCalls.cpp
  GradCombine.cpp
  GradCopies.cpp
  GradDiagonals.cpp
  Gradient.cpp
  GradOperands.cpp
  GradPieces.cpp
  GradPrint.cpp
  GradPrintKernel.cpp
  GradReduce.cpp
  GradResolve.cpp
  GradRules.cpp
  GradSolve.cpp
  GradTerm.cpp
  GradWeights.cpp
  IRGen.cpp
  IRGenExpr.cpp
  IRGenMath.cpp
  Sema.cpp
  SemaAccess.cpp
  SemaAssert.cpp
  SemaBounded.cpp
  SemaCall.cpp
  SemaExpr.cpp
  SemaExtents.cpp
  SemaFactors.cpp
  SemaFn.cpp
  SemaGather.cpp
  SemaHidden.cpp
  SemaKernel.cpp
  SemaMesh.cpp
  SemaNames.cpp
  SemaNode.cpp
  SemaProofs.cpp
  SemaRange.cpp
  SemaReduce.cpp
  SemaSchedule.cpp
  SemaStmt.cpp
  Types.cpp)
tk_use_mlir(tk_frontend)
target_link_libraries(tk_frontend PUBLIC tk_syntax tk_dialect)

add_executable(tk-translate tk-translate.cpp)
tk_use_mlir(tk-translate)
target_link_libraries(tk-translate PRIVATE tk_frontend tk_mlir)
