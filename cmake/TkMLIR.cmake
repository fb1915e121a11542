# Finds LLVM/MLIR 22 and prepares it for static linking.
#
#   tk_mlir            INTERFACE library: the archives of MLIR and LLVM that tk uses
#   tk_mlir_options    INTERFACE library: include directories and flags for code that uses MLIR
#   tk_use_mlir(T)     what a target of ours that includes MLIR headers calls

if(NOT MLIR_DIR AND EXISTS /usr/lib/llvm-22/lib/cmake/mlir)
  set(MLIR_DIR /usr/lib/llvm-22/lib/cmake/mlir)
endif()
find_package(MLIR 22.1 REQUIRED CONFIG)
list(APPEND CMAKE_MODULE_PATH "${MLIR_CMAKE_DIR}" "${LLVM_CMAKE_DIR}")
include(TableGen)
include(AddLLVM)
include(AddMLIR)

# The exported archives name the shared libLLVM and libMLIR in their link interface; a static link
# would then hold two copies of both. Drop those names from every exported target.
foreach(target IN LISTS MLIR_EXPORTED_TARGETS)
  if(TARGET ${target})
    get_target_property(libraries ${target} INTERFACE_LINK_LIBRARIES)
    if(libraries)
      list(FILTER libraries EXCLUDE REGEX "^(LLVM|MLIR)$")
      set_target_properties(${target} PROPERTIES INTERFACE_LINK_LIBRARIES "${libraries}")
    endif()
  endif()
endforeach()
# LLVM's compression libraries are linked statically, too: not every system has libzstd.
find_library(TK_ZSTD_ARCHIVE NAMES libzstd.a)
find_library(TK_ZLIB_ARCHIVE NAMES libz.a)
get_target_property(libraries LLVMSupport INTERFACE_LINK_LIBRARIES)
if(TK_ZSTD_ARCHIVE)
  list(TRANSFORM libraries REPLACE "^zstd::libzstd_shared$" "${TK_ZSTD_ARCHIVE}")
endif()
if(TK_ZLIB_ARCHIVE)
  list(TRANSFORM libraries REPLACE "^ZLIB::ZLIB$" "${TK_ZLIB_ARCHIVE}")
endif()
set_target_properties(LLVMSupport PROPERTIES INTERFACE_LINK_LIBRARIES "${libraries}")

add_library(tk_mlir_options INTERFACE)
target_include_directories(tk_mlir_options SYSTEM INTERFACE
  ${MLIR_INCLUDE_DIRS} ${LLVM_INCLUDE_DIRS})
target_include_directories(tk_mlir_options INTERFACE
  ${PROJECT_SOURCE_DIR} ${PROJECT_BINARY_DIR})
separate_arguments(tk_llvm_definitions NATIVE_COMMAND "${LLVM_DEFINITIONS}")
target_compile_definitions(tk_mlir_options INTERFACE ${tk_llvm_definitions})
target_link_libraries(tk_mlir_options INTERFACE tk_options)
if(NOT LLVM_ENABLE_ASSERTIONS)
  target_compile_options(tk_mlir_options INTERFACE
    "SHELL:-include ${PROJECT_SOURCE_DIR}/cmake/tk_statistics.h")
endif()

set(tk_mlir_libraries
  MLIRIR MLIRParser MLIRPass MLIRTransforms MLIRTransformUtils MLIRSupport MLIRAnalysis
  MLIROptLib MLIRFunctionInterfaces MLIRInferTypeOpInterface MLIRLoopLikeInterface
  MLIRDestinationStyleOpInterface MLIRSideEffectInterfaces MLIRTilingInterface
  MLIRArithDialect MLIRArithTransforms MLIRArithUtils MLIRMathDialect MLIRMathTransforms
  MLIRTensorDialect MLIRTensorTransforms MLIRTensorUtils MLIRTensorTilingInterfaceImpl
  MLIRTensorInferTypeOpInterfaceImpl
  MLIRSCFDialect MLIRSCFTransforms MLIRSCFUtils MLIRFuncDialect MLIRFuncTransforms
  MLIRMemRefDialect MLIRMemRefTransforms MLIRAffineDialect MLIRAffineTransforms
  MLIRVectorDialect MLIRVectorTransforms MLIRVectorUtils
  MLIRLinalgDialect MLIRLinalgTransforms MLIRLinalgUtils
  MLIRBufferizationDialect MLIRBufferizationTransforms MLIRBufferizationPipelines
  MLIRControlFlowDialect MLIRControlFlowTransforms MLIRUBDialect MLIRIndexDialect)
if(TK_ENABLE_CPU)
  list(APPEND tk_mlir_libraries
    MLIRLLVMDialect MLIRLLVMIRTransforms MLIRTargetLLVMIRExport MLIRLLVMToLLVMIRTranslation
    MLIRBuiltinToLLVMIRTranslation MLIRTargetLLVM MLIRExecutionEngine MLIRExecutionEngineUtils
    MLIRConvertToLLVMInterface MLIRConvertToLLVMPass
    MLIRArithToLLVM MLIRMathToLLVM MLIRMathToLibm MLIRFuncToLLVM MLIRControlFlowToLLVM
    MLIRIndexToLLVM MLIRMemRefToLLVM MLIRVectorToLLVM MLIRVectorToLLVMPass MLIRVectorToSCF
    MLIRUBToLLVM MLIRSCFToControlFlow MLIRAffineToStandard MLIRLinalgToStandard
    MLIRReconcileUnrealizedCasts MLIRArithToAPFloat MLIRX86VectorDialect MLIRX86VectorTransforms)
endif()
set(tk_llvm_components Core Support BitReader BitWriter Remarks TargetParser)
if(TK_ENABLE_CPU)
  list(APPEND tk_llvm_components
    X86 OrcJIT ExecutionEngine Passes ipo Vectorize perfjitevents MCJIT)
endif()
llvm_map_components_to_libnames(tk_llvm_libraries ${tk_llvm_components})

add_library(tk_mlir INTERFACE)
target_link_libraries(tk_mlir INTERFACE
  tk_mlir_options ${tk_mlir_libraries} ${tk_llvm_libraries})

# One precompiled header for all code that uses MLIR: 1.3 s a unit instead of 6.
file(WRITE ${PROJECT_BINARY_DIR}/tk_pch.cpp "// Owns the precompiled header that the MLIR-using targets share.\n")
add_library(tk_pch OBJECT ${PROJECT_BINARY_DIR}/tk_pch.cpp)
target_link_libraries(tk_pch PRIVATE tk_mlir_options)
# Clones at other places share compiler caches. No path of this clone is part of the header or of a command:
# the header is named in angle brackets, and Ninja runs commands in the build folder. The precompiled header
# itself names files of this clone, so it is never taken from a cache; ccache identifies it by the checksum of
# what it is made of (CCACHE_PCH_EXTSUM, see scripts/setup).
if(CMAKE_GENERATOR STREQUAL "Ninja" AND CMAKE_CXX_COMPILER_ID MATCHES "Clang")
  set(tk_pch_header CMakeFiles/tk_pch.dir/cmake_pch.hxx)
  set(CMAKE_CXX_COMPILE_OPTIONS_CREATE_PCH
    -Xclang -emit-pch -Xclang -include -Xclang ${tk_pch_header} -x c++-header)
  set(CMAKE_CXX_COMPILE_OPTIONS_USE_PCH
    -Xclang -include-pch -Xclang ${tk_pch_header}.pch -Xclang -include -Xclang ${tk_pch_header})
  file(SHA256 ${PROJECT_SOURCE_DIR}/cmake/tk_pch.h tk_pch_sum)
  file(WRITE ${PROJECT_BINARY_DIR}/${tk_pch_header}.pch.sum
    "${tk_pch_sum} ${LLVM_PACKAGE_VERSION} ${CMAKE_CXX_COMPILER_VERSION} ${CMAKE_CXX_FLAGS} ${TK_SANITIZE}\n")
  set_target_properties(tk_pch PROPERTIES CXX_COMPILER_LAUNCHER "")
endif()
target_include_directories(tk_pch PRIVATE ${PROJECT_SOURCE_DIR})
target_precompile_headers(tk_pch PRIVATE <cmake/tk_pch.h>)
if(CMAKE_CXX_COMPILER_ID MATCHES "Clang")
  add_compile_options(-fpch-instantiate-templates "SHELL:-Xclang -fno-pch-timestamp")
  target_compile_options(tk_pch PRIVATE -fpch-instantiate-templates "SHELL:-Xclang -fno-pch-timestamp")
endif()

function(tk_use_mlir target)
  target_link_libraries(${target} PUBLIC tk_mlir_options)
  target_precompile_headers(${target} REUSE_FROM tk_pch)
endfunction()
