# What `cmake --install` puts where, and what find_package(tk) finds: tk::tk (compiler and runtime,
# libtk.so), tk::runtime (launches bundles; a static library without LLVM and NVRTC), tk::tkc.
include(CMakePackageConfigHelpers)
include(GNUInstallDirs)

install(TARGETS tkc tk_shared tk_runtime EXPORT tkTargets
  RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR}
  LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR}
  ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR})
install(DIRECTORY ${PROJECT_SOURCE_DIR}/runtime/include/tk
  DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} FILES_MATCHING PATTERN "*.h")

set(tk_package_directory ${CMAKE_INSTALL_LIBDIR}/cmake/tk)
install(EXPORT tkTargets NAMESPACE tk:: DESTINATION ${tk_package_directory})
configure_package_config_file(${CMAKE_CURRENT_LIST_DIR}/tkConfig.cmake.in
  ${PROJECT_BINARY_DIR}/tkConfig.cmake INSTALL_DESTINATION ${tk_package_directory})
# Before 1.0 every minor version may change the interface.
write_basic_package_version_file(${PROJECT_BINARY_DIR}/tkConfigVersion.cmake
  COMPATIBILITY SameMinorVersion)
install(FILES ${CMAKE_CURRENT_LIST_DIR}/TkAddKernels.cmake
  ${PROJECT_BINARY_DIR}/tkConfig.cmake ${PROJECT_BINARY_DIR}/tkConfigVersion.cmake
  DESTINATION ${tk_package_directory})
install(DIRECTORY ${PROJECT_SOURCE_DIR}/python/tk DESTINATION ${CMAKE_INSTALL_DATADIR}/tk/python
  FILES_MATCHING PATTERN "*.py" PATTERN "*.pyi" PATTERN "py.typed")
