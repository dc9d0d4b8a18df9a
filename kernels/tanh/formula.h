// The gradient of tanh from its result, one text for C++, CUDA and GLSL (kernels/formula.hpp).
FORMULA2(tanh_grad, dy, y) { return dy * (NUM(1) - y * y); }
