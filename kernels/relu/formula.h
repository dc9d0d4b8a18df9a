// relu and its gradient from its result, one text for C++, CUDA and GLSL (kernels/formula.hpp). NaN stays NaN.
FORMULA1(relu, x) { return SELECT(x < NUM(0), NUM(0), x); }
FORMULA2(relu_grad, dy, y) { return SELECT(y <= NUM(0), NUM(0), dy); }
