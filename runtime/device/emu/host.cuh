// Functions of CUDA's library that the shared headers use, under their names there.
#pragma once

#define TK_DECLARE(name)                                                                           \
  extern "C" float name##f(float) noexcept;                                                        \
  extern "C" double name(double) noexcept;
TK_DECLARE(exp)
TK_DECLARE(exp2)
TK_DECLARE(expm1)
TK_DECLARE(log)
TK_DECLARE(log2)
TK_DECLARE(log10)
TK_DECLARE(log1p)
TK_DECLARE(sqrt)
TK_DECLARE(tanh)
TK_DECLARE(tan)
TK_DECLARE(erf)
TK_DECLARE(sin)
TK_DECLARE(cos)
TK_DECLARE(floor)
TK_DECLARE(ceil)
TK_DECLARE(trunc)
TK_DECLARE(round)
TK_DECLARE(rint)
TK_DECLARE(fabs)
#undef TK_DECLARE
#define TK_DECLARE(name)                                                                           \
  extern "C" float name##f(float, float) noexcept;                                                 \
  extern "C" double name(double, double) noexcept;
TK_DECLARE(pow)
TK_DECLARE(copysign)
TK_DECLARE(fmod)
TK_DECLARE(fmax)
TK_DECLARE(fmin)
#undef TK_DECLARE
extern "C" void *memcpy(void *, const void *, unsigned long) noexcept;
extern "C" float fmaf(float, float, float) noexcept;
extern "C" double fma(double, double, double) noexcept;

inline float rsqrtf(float x) { return (float)(1.0 / sqrt((double)x)); }
inline double rsqrt(double x) { return 1.0 / sqrt(x); }

inline float __fmul_rn(float a, float b) { return a * b; }
inline double __dmul_rn(double a, double b) { return a * b; }

inline float __uint_as_float(unsigned bits) { return __builtin_bit_cast(float, bits); }
inline unsigned __float_as_uint(float x) { return __builtin_bit_cast(unsigned, x); }
inline double __longlong_as_double(long long bits) { return __builtin_bit_cast(double, bits); }
inline long long __double_as_longlong(double x) { return __builtin_bit_cast(long long, x); }
