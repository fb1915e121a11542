# The frontend with coverage, for libFuzzer (part of clang's runtime, libclang-rt-22-dev): built anew
# from its sources with AddressSanitizer and UndefinedBehaviorSanitizer, but for the generation of IR.
include(CheckCXXSourceCompiles)
set(CMAKE_REQUIRED_FLAGS -fsanitize=fuzzer,address,undefined)
check_cxx_source_compiles("#include <cstddef>
  #include <cstdint>
  extern \"C\" int LLVMFuzzerTestOneInput(const uint8_t *, size_t) { return 0; }" TK_HAVE_LIBFUZZER)
unset(CMAKE_REQUIRED_FLAGS)
# A sanitizer of the whole build may not go with these.
if(NOT TK_HAVE_LIBFUZZER OR TK_SANITIZE)
  message(STATUS "no tk-fuzz-frontend: it needs clang's libFuzzer, and a build without TK_SANITIZE")
  return()
endif()

set(sources "")
foreach(library tk_syntax tk_frontend)
  get_target_property(files ${library} SOURCES)
  list(FILTER files EXCLUDE REGEX "^IRGen|^/|cmake_pch")
  list(TRANSFORM files PREPEND ${PROJECT_SOURCE_DIR}/frontend/)
  list(APPEND sources ${files})
endforeach()
list(APPEND sources ${PROJECT_BINARY_DIR}/frontend/StdLibrary.cpp)
add_executable(tk-fuzz-frontend tk-fuzz-frontend.cpp ${sources})
target_compile_options(tk-fuzz-frontend PRIVATE
  -g1 -fsanitize=fuzzer,address,undefined -fno-sanitize=function,vptr -fno-sanitize-recover=all)
target_link_options(tk-fuzz-frontend PRIVATE -fsanitize=fuzzer,address,undefined)
target_link_libraries(tk-fuzz-frontend PRIVATE tk_mlir_options tk_mlir)

# Begins with the programs there are; the same inputs in every run. AddressSanitizer's shadow takes
# more addresses than scripts/test lets tests have.
set(corpus ${CMAKE_CURRENT_BINARY_DIR}/corpus)
add_test(NAME fuzz.coverage COMMAND sh -c
  "ulimit -S -v unlimited; rm -rf ${corpus} && mkdir ${corpus} && exec $<TARGET_FILE:tk-fuzz-frontend> ${corpus} \
    ${PROJECT_SOURCE_DIR}/examples ${PROJECT_SOURCE_DIR}/tests/e2e/programs \
    ${PROJECT_SOURCE_DIR}/tests/frontend/errors -dict=${CMAKE_CURRENT_SOURCE_DIR}/tk.dict \
    -seed=1 -runs=20000 -timeout=20 -rss_limit_mb=2048 -artifact_prefix=${corpus}/ \
    -print_final_stats=1 -verbosity=0")
set_tests_properties(fuzz.coverage PROPERTIES LABELS "fuzz")
