// Which operand maximum and minimum take, one text for C++, CUDA and GLSL (kernels/formula.hpp). b if it is beyond a or
// NaN, else a: so a NaN in a stays, and ties go to a.
FORMULA2(maximum_of, a, b) { return SELECT(a < b, b, SELECT(b != b, b, a)); }
FORMULA2(minimum_of, a, b) { return SELECT(a > b, b, SELECT(b != b, b, a)); }
FORMULA3(maximum_grad_first, dy, a, b) { return SELECT(a < b, NUM(0), SELECT(b != b, NUM(0), dy)); }
FORMULA3(maximum_grad_second, dy, a, b) { return SELECT(a < b, dy, SELECT(b != b, dy, NUM(0))); }
FORMULA3(minimum_grad_first, dy, a, b) { return SELECT(a > b, NUM(0), SELECT(b != b, NUM(0), dy)); }
FORMULA3(minimum_grad_second, dy, a, b) { return SELECT(a > b, dy, SELECT(b != b, dy, NUM(0))); }
