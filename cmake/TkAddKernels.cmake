# tk_add_kernels(target file.tk... ARCHS arch...
#                [VARIANTS "NAME=INT,..."...] [NAMESPACE name] [RUNTIME tk::tk] [OPTIONS option...])
#
# Compiles the kernels of `.tk` files at build time, for the architectures named, and adds them to a
# target. `file.tk` gives the header "file.tk.h" with one typed function a kernel, in the namespace
# of the file's name unless NAMESPACE says another. VARIANTS are sizes that calls will have: code for
# them assumes what they share with others (`tkc build --variant`). The target links tk::runtime;
# one that compiles at run time too says RUNTIME tk::tk. OPTIONS go to `tkc build`.
#
# A change of the file, of what it imports, or of tkc compiles it again.
#
# Building needs NVRTC, but no GPU.
cmake_policy(PUSH)
cmake_policy(SET CMP0116 NEW) # depfiles name files by absolute paths
function(tk_add_kernels target)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "NAMESPACE;RUNTIME" "ARCHS;VARIANTS;OPTIONS")
  if(NOT arg_ARCHS)
    message(FATAL_ERROR "tk_add_kernels(${target}): name the architectures: ARCHS sm_90a")
  endif()
  if(NOT arg_UNPARSED_ARGUMENTS)
    message(FATAL_ERROR "tk_add_kernels(${target}): name at least one .tk file")
  endif()
  if(NOT arg_RUNTIME)
    set(arg_RUNTIME tk::runtime)
  endif()
  list(JOIN arg_ARCHS "," archs)
  set(options ${arg_OPTIONS})
  foreach(variant IN LISTS arg_VARIANTS)
    list(APPEND options --variant ${variant})
  endforeach()
  if(arg_NAMESPACE)
    list(APPEND options --namespace ${arg_NAMESPACE})
  endif()
  set(directory ${CMAKE_CURRENT_BINARY_DIR}/${target}_kernels)
  file(MAKE_DIRECTORY ${directory})
  foreach(file IN LISTS arg_UNPARSED_ARGUMENTS)
    get_filename_component(path ${file} ABSOLUTE)
    get_filename_component(name ${file} NAME)
    set(base ${directory}/${name})
    add_custom_command(
      OUTPUT ${base}b ${base}.h ${base}.cpp
      COMMAND tk::tkc build ${path} --emit bundle --target ${archs} ${options}
        -o ${base}b --cpp ${base} --depfile ${base}.d
      DEPENDS ${path} tk::tkc
      DEPFILE ${base}.d
      COMMENT "Compiling the kernels of ${name} for ${archs}"
      VERBATIM)
    set_source_files_properties(${base}.cpp PROPERTIES OBJECT_DEPENDS ${base}b)
    target_sources(${target} PRIVATE ${base}.cpp ${base}.h)
  endforeach()
  target_include_directories(${target} PRIVATE ${directory})
  target_link_libraries(${target} PRIVATE ${arg_RUNTIME})
endfunction()
cmake_policy(POP)
