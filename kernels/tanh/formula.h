// The gradient of tanh from its result, one text for C++, CUDA and GLSL (kernels/formula.hpp).
// 1 - y y would cancel near 1; 1 - y is exact there.
FORMULA2(tanh_grad, dy, y) { return dy * ((NUM(1) - y) * (NUM(1) + y)); }
