// gelu and its derivative, one text for C++, CUDA and GLSL (kernels/formula.hpp). Neither form subtracts nearly equal
// numbers, so that small results are right to their last places too.

// Tanh form: 0.5 (1 + tanh u) is the logistic function of v = 2u = x (p + q x^2).
FORMULA1(gelu_tanh_form, x) { return x * sigmoid(x * (NUM(1.5957691216057308) + NUM(0.07135481627260025) * (x * x))); }
FORMULA2(gelu_tanh_form_grad, dy, x) {
  T z = SELECT(x * x < NUM(400), x * x, NUM(400));  // beyond it the logistic function is 0 or 1
  T v = x * (NUM(1.5957691216057308) + NUM(0.07135481627260025) * z);
  T e = exp(-abs(v));
  T larger = NUM(1) / (NUM(1) + e);
  T smaller = e * larger;  // the logistic function of v and of -v
  T slope = larger * smaller * (NUM(1.5957691216057308) + NUM(0.21406444881780076) * z);
  return dy * (SELECT(v < NUM(0), smaller, larger) + x * slope);
}

// Erf form: x P(N < x) of a normal N. For a >= 0, P(N > a) = exp(-a^2 / 2) g(a); g in powers of 1 / (1 + 0.27 a) is our
// own fit, within 2^-25 of its value, relative, up to 14.5, where the product is 0 in float.
FORMULA1(gelu_normal_tail, a) {
  T t = NUM(1) / (NUM(1) + NUM(0.27) * a);
  T g = NUM(-0.12648595869541168) + t * NUM(0.028961073607206345);
  g = NUM(0.16978681087493896) + t * g;
  g = NUM(-0.06921197474002838) + t * g;
  g = NUM(0.10782673209905624) + t * g;
  g = NUM(0.07204905152320862) + t * g;
  g = NUM(0.1018107682466507) + t * g;
  g = NUM(0.10754285007715225) + t * g;
  return t * (NUM(0.10772065818309784) + t * g);
}
FORMULA1(gelu_erf_form, x) {
  T tail = exp(NUM(-0.5) * x * x) * gelu_normal_tail(abs(x));
  return x * SELECT(x < NUM(0), tail, NUM(1) - tail);
}
FORMULA2(gelu_erf_form_grad, dy, x) {
  T e = exp(NUM(-0.5) * x * x);
  T tail = e * gelu_normal_tail(abs(x));
  return dy * (SELECT(x < NUM(0), tail, NUM(1) - tail) + x * (NUM(0.3989422804014327) * e));
}
