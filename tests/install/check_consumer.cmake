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
file(REMOVE_RECURSE ${prefix} ${SCRATCH}/consumer)
run(${CMAKE_COMMAND} --install ${BUILD} --prefix ${prefix})

# Kernels are compiled ahead of time where NVRTC is to be had.
run(${prefix}/bin/tkc doctor)
set(kernels OFF)
if(output MATCHES "nvrtc +[0-9]")
  set(kernels ON)
endif()
run(${CMAKE_COMMAND} -S ${CMAKE_CURRENT_LIST_DIR}/consumer -B ${SCRATCH}/consumer -G ${GENERATOR}
  -D CMAKE_PREFIX_PATH=${prefix} -D CMAKE_CXX_COMPILER=${COMPILER} -D "CMAKE_CXX_FLAGS=${FLAGS}"
  -D WITH_KERNELS=${kernels})
run(${CMAKE_COMMAND} --build ${SCRATCH}/consumer)
run(${SCRATCH}/consumer/compile_at_run_time)
if(kernels)
  run(${SCRATCH}/consumer/launch_bundle)
  message("${output}")
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
