# Flags that every target of ours is compiled with.
#
# tk_options is for code that uses neither LLVM nor MLIR (runtime, frontend's syntax);
# tk_mlir_options adds their include directories, definitions and the shared precompiled header.

add_library(tk_options INTERFACE)
# -fPIC by hand: CMAKE_POSITION_INDEPENDENT_CODE makes clang reject a reused precompiled header.
add_compile_options(-fPIC -ffunction-sections -fdata-sections)
target_compile_options(tk_options INTERFACE -Wall -Wextra -Wno-unused-parameter)
if(TK_WERROR)
  target_compile_options(tk_options INTERFACE -Werror)
endif()
if(CMAKE_CXX_COMPILER_ID MATCHES "Clang")
  target_compile_options(tk_options INTERFACE -Wno-c++20-designator)
endif()

foreach(sanitizer IN LISTS TK_SANITIZE)
  list(APPEND tk_sanitizer_flags -fsanitize=${sanitizer})
  add_compile_options(-fsanitize=${sanitizer} -fno-omit-frame-pointer)
  add_link_options(-fsanitize=${sanitizer})
endforeach()
if("undefined" IN_LIST TK_SANITIZE)
  # The driver's and NVRTC's functions are called through types of our own, and LLVM's archives come
  # without the type information that vptr needs.
  add_compile_options(-fno-sanitize=function,vptr)
endif()

# A test whose program is not ours but loads libtk.so, such as Python: the sanitizers' runtime has to
# be there before the program is. What such a program does not free is its own affair.
function(tk_preload_sanitizer test)
  foreach(pair address:asan thread:tsan)
    string(REPLACE ":" ";" pair ${pair})
    list(GET pair 0 sanitizer)
    list(GET pair 1 runtime)
    if(sanitizer IN_LIST TK_SANITIZE)
      execute_process(COMMAND ${CMAKE_CXX_COMPILER}
        -print-file-name=libclang_rt.${runtime}-${CMAKE_SYSTEM_PROCESSOR}.so
        OUTPUT_VARIABLE library OUTPUT_STRIP_TRAILING_WHITESPACE)
      set_property(TEST ${test} APPEND PROPERTY ENVIRONMENT LD_PRELOAD=${library})
      set_property(TEST ${test} APPEND PROPERTY
        ENVIRONMENT_MODIFICATION ASAN_OPTIONS=path_list_append:detect_leaks=0)
    endif()
  endforeach()
endfunction()

# A small binary that runs on another machine: only libc and libm stay dynamic.
if(CMAKE_CXX_COMPILER_ID MATCHES "Clang")
  add_link_options(-fuse-ld=lld -Wl,--gc-sections -Wl,--icf=all -Wl,--as-needed)
  # Functions of LLVM that are never called have no instruction, and the linker makes one of them.
  # Its entry in the table of frames has no length and hides that of the function behind it, through
  # which no exception passes then. The order puts a function there that throws nothing.
  set(tk_order ${CMAKE_CURRENT_LIST_DIR}/functions.order)
  add_link_options(-Wl,--symbol-ordering-file=${tk_order} -Wl,--no-warn-symbol-ordering)
endif()
# Libraries share the C++ runtime of the program that loads them: exceptions pass through both.
if(NOT TK_SANITIZE)
  set(tk_is_program $<STREQUAL:$<TARGET_PROPERTY:TYPE>,EXECUTABLE>)
  add_link_options($<$<AND:$<LINK_LANGUAGE:CXX>,${tk_is_program}>:-static-libstdc++>
    $<${tk_is_program}:-static-libgcc>)
endif()
