# Installs into a scratch directory, then configures, builds and runs a project that finds the
# package there.
#   BUILD  SCRATCH  COMPILER  FLAGS  GENERATOR  NM
function(run)
  execute_process(COMMAND ${ARGN} RESULT_VARIABLE status
    OUTPUT_VARIABLE output ERROR_VARIABLE output)
  if(NOT status EQUAL 0)
    list(JOIN ARGN " " command)
    message(FATAL_ERROR "${command}\nfailed: ${status}\n${output}")
  endif()
  set(output "${output}" PARENT_SCOPE)
endfunction()

set(prefix ${SCRATCH}/prefix)
# A copy, whose files may change. The blank makes paths that depfiles have to escape.
set(source "${SCRATCH}/consumer source")
file(REMOVE_RECURSE ${prefix} ${SCRATCH}/consumer ${source})
file(COPY ${CMAKE_CURRENT_LIST_DIR}/consumer/ DESTINATION ${source})
run(${CMAKE_COMMAND} --install ${BUILD} --prefix ${prefix})

# Kernels are compiled ahead of time where NVRTC is to be had.
run(${prefix}/bin/tkc doctor)
set(kernels OFF)
if(output MATCHES "nvrtc +[0-9]")
  set(kernels ON)
endif()
run(${CMAKE_COMMAND} -S ${source} -B ${SCRATCH}/consumer -G ${GENERATOR}
  -D CMAKE_PREFIX_PATH=${prefix} -D CMAKE_CXX_COMPILER=${COMPILER} -D "CMAKE_CXX_FLAGS=${FLAGS}"
  -D WITH_KERNELS=${kernels})
run(${CMAKE_COMMAND} --build ${SCRATCH}/consumer)
run(${SCRATCH}/consumer/compile_at_run_time)
if(kernels)
  run(${SCRATCH}/consumer/launch_bundle)
  message("${output}")
  # A change of an imported file compiles the kernels again, and nothing else does.
  set(bundle ${SCRATCH}/consumer/launch_bundle_kernels/scale.tkb)
  file(SHA256 ${bundle} before)
  file(TIMESTAMP ${bundle} made "%s")
  run(${CMAKE_COMMAND} --build ${SCRATCH}/consumer)
  file(TIMESTAMP ${bundle} again "%s")
  if(NOT made STREQUAL again)
    message(FATAL_ERROR "the kernels were compiled again without a change")
  endif()
  file(READ ${source}/factors.tk text)
  string(REPLACE "TWO = 2" "TWO = 3" text "${text}")
  file(WRITE ${source}/factors.tk "${text}")
  run(${CMAKE_COMMAND} --build ${SCRATCH}/consumer)
  file(SHA256 ${bundle} after)
  if(before STREQUAL after)
    message(FATAL_ERROR "a change of an imported file did not compile the kernels again")
  endif()
  run(${SCRATCH}/consumer/launch_bundle)
  # What launches bundles carries no compiler.
  run(${NM} --undefined-only --dynamic ${SCRATCH}/consumer/launch_bundle)
  if(output MATCHES "nvrtc|llvm|mlir")
    message(FATAL_ERROR "launch_bundle needs a compiler:\n${output}")
  endif()
  file(STRINGS ${SCRATCH}/consumer/launch_bundle names REGEX "libnvrtc|libLLVM|libtk\\.so")
  if(names)
    message(FATAL_ERROR "launch_bundle names a compiler: ${names}")
  endif()
else()
  message("no NVRTC here: kernels compiled ahead of time were left out")
endif()
