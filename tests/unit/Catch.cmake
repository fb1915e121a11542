# tk_catch: what a Catch2 executable links; its main is compiled once.
include_guard(GLOBAL)
add_library(tk_catch STATIC ${CMAKE_CURRENT_LIST_DIR}/catch_main.cpp)
target_include_directories(tk_catch PUBLIC ${PROJECT_SOURCE_DIR})
find_package(Catch2 3 QUIET)
if(Catch2_FOUND)
  target_link_libraries(tk_catch PUBLIC Catch2::Catch2)
endif()

# tk_failing_allocation: replaces operator new of the executable that links it. There is none under
# ThreadSanitizer, whose runtime defines operator new for good: the tests of faults are left out there.
if(NOT "thread" IN_LIST TK_SANITIZE)
  add_library(tk_failing_allocation OBJECT ${CMAKE_CURRENT_LIST_DIR}/FailingAllocation.cpp)
  target_include_directories(tk_failing_allocation PUBLIC ${PROJECT_SOURCE_DIR})
  target_link_libraries(tk_failing_allocation PRIVATE tk_options)
endif()
