// gelu and its derivative, one text for C++, CUDA and GLSL (kernels/formula.hpp). Tanh form with u = sqrt(2/pi) (x + c x^3), and
// erf form.
FORMULA1(gelu_tanh_form, x) {
  return NUM(0.5) * x * (NUM(1) + tanh(NUM(0.7978845608028654) * (x + NUM(0.044715) * x * x * x)));
}
FORMULA2(gelu_tanh_form_grad, dy, x) {
  T t = tanh(NUM(0.7978845608028654) * (x + NUM(0.044715) * x * x * x));
  T du = NUM(0.7978845608028654) * (NUM(1) + NUM(0.134145) * x * x);
  return dy * (NUM(0.5) * (NUM(1) + t) + NUM(0.5) * x * (NUM(1) - t * t) * du);
}
FORMULA1(gelu_erf_form, x) { return NUM(0.5) * x * (NUM(1) + erf(NUM(0.7071067811865476) * x)); }
FORMULA2(gelu_erf_form_grad, dy, x) {
  T cdf = NUM(0.5) * (NUM(1) + erf(NUM(0.7071067811865476) * x));
  T pdf = NUM(0.3989422804014327) * exp(NUM(-0.5) * x * x);
  return dy * (cdf + x * pdf);
}
