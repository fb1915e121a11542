// Whichever Catch2 is installed: the single header of version 2, or version 3.

#ifndef TK_TESTS_UNIT_CATCH_H
#define TK_TESTS_UNIT_CATCH_H

#if __has_include(<catch2/catch_all.hpp>)
#include <catch2/catch_all.hpp>
#else
#include <catch2/catch.hpp>
#endif

#endif // TK_TESTS_UNIT_CATCH_H
