// gelu and its derivative, one text for C++, CUDA and GLSL (kernels/formula.hpp).
// Tanh form: 0.5 (1 + tanh u) = sigmoid(2u), u = sqrt(2/pi) (x + c x^3); written so, the tail below 0 does not cancel.
FORMULA1(gelu_tanh_form, x) {
  return x * sigmoid(NUM(1.5957691216057308) * (x + NUM(0.044715) * x * x * x));
}
FORMULA2(gelu_tanh_form_grad, dy, x) {
  T v = NUM(1.5957691216057308) * (x + NUM(0.044715) * x * x * x);
  T dv = NUM(1.5957691216057308) * (NUM(1) + NUM(0.134145) * x * x);
  T s = sigmoid(v);
  return dy * (s + x * s * sigmoid(-v) * dv);
}
FORMULA1(gelu_erf_form, x) { return NUM(0.5) * x * (NUM(1) + erf(NUM(0.7071067811865476) * x)); }
FORMULA2(gelu_erf_form_grad, dy, x) {
  T cdf = NUM(0.5) * (NUM(1) + erf(NUM(0.7071067811865476) * x));
  T pdf = NUM(0.3989422804014327) * exp(NUM(-0.5) * x * x);
  return dy * (cdf + x * pdf);
}
