// The gradients of activations from their results, one text for C++, CUDA and GLSL (kernels/formula.hpp).
FORMULA2(relu_grad_from_result, dy, y) { return SELECT(y <= NUM(0), NUM(0), dy); }
FORMULA2(tanh_grad_from_result, dy, y) { return dy * (NUM(1) - y * y); }
FORMULA2(sigmoid_grad_from_result, dy, y) { return dy * (y * (NUM(1) - y)); }
