// In place of the generated header: the one op is Orphan.
#pragma once

#include "tests/ops/incomplete/record.hpp"

#define LAMINA_FOR_EACH_OP(X) X(Orphan)
