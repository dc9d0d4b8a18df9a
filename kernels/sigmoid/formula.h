// The gradient of sigmoid from its result, one text for C++, CUDA and GLSL (kernels/formula.hpp).
FORMULA2(sigmoid_grad, dy, y) { return dy * y * (NUM(1) - y); }
