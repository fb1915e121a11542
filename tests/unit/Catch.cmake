# tk_catch: what a Catch2 executable links; its main is compiled once.
include_guard(GLOBAL)
add_library(tk_catch STATIC ${CMAKE_CURRENT_LIST_DIR}/catch_main.cpp)
target_include_directories(tk_catch PUBLIC ${PROJECT_SOURCE_DIR})
find_package(Catch2 3 QUIET)
if(Catch2_FOUND)
  target_link_libraries(tk_catch PUBLIC Catch2::Catch2)
endif()
