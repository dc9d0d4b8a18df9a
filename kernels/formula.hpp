// Scalar formulas that every device shares are one text: kernels/<op>/formula.h, which compiles as C++ (over numbers
// and over lanes), as CUDA and as GLSL. This header gives the C++ meaning of its words:
//   FORMULA1(name, x) { return ...; }     a function of one number; FORMULA2, FORMULA3 alike
//   NUM(0.5)                              a constant of the number type
//   SELECT(condition, a, b)
// and plain exp, log, tanh, sqrt, erf, abs, sigmoid.
#pragma once

#define FORMULA1(name, x) \
  template <class T>      \
  [[gnu::always_inline, maybe_unused]] inline T name(const T x)
#define FORMULA2(name, x, y) \
  template <class T>         \
  [[gnu::always_inline, maybe_unused]] inline T name(const T x, const T y)
#define FORMULA3(name, x, y, z) \
  template <class T>            \
  [[gnu::always_inline, maybe_unused]] inline T name(const T x, const T y, const T z)
#define NUM(c) static_cast<float>(c)
#define SELECT(condition, a, b) ((condition) ? (a) : (b))
