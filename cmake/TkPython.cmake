# TK_PYTHON: an interpreter that has NumPy, else the first in PATH. The system's is asked behind the first
# in PATH, since a distribution's NumPy is for that one. Tests that need NumPy exit with 77 where there is none.
find_package(Python3 COMPONENTS Interpreter REQUIRED)
set(TK_PYTHON ${Python3_EXECUTABLE})
foreach(candidate ${Python3_EXECUTABLE} /usr/bin/python3)
  execute_process(COMMAND ${candidate} -c "import numpy" RESULT_VARIABLE failed OUTPUT_QUIET ERROR_QUIET)
  if(failed EQUAL 0)
    set(TK_PYTHON ${candidate})
    break()
  endif()
endforeach()
