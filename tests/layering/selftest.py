"""layering.py finds what it is for: a small clean tree is clean, and each planted fault is reported, and only it."""

import pathlib
import sys
import tempfile

import layering

CLEAN = {
    "core/tensor.hpp": '#include <vector>\n#include <fmt/core.h>\n',
    "core/tensor.cpp": '#include "lamina/core/tensor.hpp"\n#include <sys/mman.h>\n',
    "core/io/json.hpp": '#include <nlohmann/json.hpp>\n#include "lamina/core/tensor.hpp"\n',
    "kernels/op.hpp": '#include "lamina/core/tensor.hpp"\n',
    "kernels/formula.hpp": "#define NUM(c) (c)\n",
    "kernels/cpu/simd/simd.hpp": "typedef float vf;\n",
    "kernels/cpu/simd/for_each_isa.hpp": '#include <immintrin.h>\n#include "lamina/kernels/op.hpp"\n'
                                         '#include "lamina/kernels/cpu/simd/simd.hpp"\n#include LAMINA_VECTOR_CODE\n',
    "kernels/gelu/op.hpp": '#include "lamina/kernels/op.hpp"\n',
    "kernels/gelu/op.cpp": '#include "lamina/kernels/gelu/op.hpp"\n#include <cmath>\n',
    "kernels/gelu/formula.h": "FORMULA1(gelu, x)\n",
    "kernels/gelu/vector.hpp": '#include "lamina/kernels/cpu/simd/simd.hpp"\n'
                               '#include "lamina/kernels/gelu/formula.h"\n',
    "kernels/gelu/cpu.cpp": '#include "lamina/kernels/gelu/op.hpp"\n'
                            '#define LAMINA_VECTOR_CODE "lamina/kernels/gelu/vector.hpp"\n'
                            '#include "lamina/kernels/cpu/simd/for_each_isa.hpp"\n',
    "kernels/gelu/cuda.cu": "#include <cuda_runtime.h>\n",
    "kernels/vulkan/device.cpp": "#include <vulkan/vulkan.h>\n",
    "autograd/tape.hpp": '#include "lamina/kernels/op_list.hpp"\n',
    "nn/module.hpp": '#include "lamina/autograd/tape.hpp"\n#include "lamina/core/io/json.hpp"\n',
    "dist/comm/group.hpp": '#include "lamina/core/tensor.hpp"\n',
    "dist/comm/transport/tcp.cpp": "#include <sys/socket.h>\n#include <netinet/in.h>\n",
    "dist/schedule/action.hpp": '#include "lamina/core/tensor.hpp"\n',
    "dist/train/runner.hpp": '#include "lamina/nn/module.hpp"\n#include "lamina/dist/comm/group.hpp"\n',
    "models/mlp.hpp": '#include "lamina/dist/train/runner.hpp"\n#include "lamina/models/data/images.hpp"\n',
    "models/data/images.hpp": "#include <turbojpeg.h>\n",
    "tools/main.cpp": '#include <CLI/CLI.hpp>\n#include "lamina/models/mlp.hpp"\n// #include <boost/any.hpp>\n',
    "tests/mlp_test.cpp": '#include <gtest/gtest.h>\n#include "lamina/models/mlp.hpp"\n',
}
GENERATED = {"kernels/op_list.hpp": '#include "lamina/kernels/gelu/op.hpp"\n'}

# (what it shows, file, line added to it, what the report must say)
FAULTS = [
    ("upward include", "core/tensor.hpp", '#include "lamina/nn/module.hpp"', "core may not include nn"),
    ("kernels know no files", "kernels/op.hpp", '#include "lamina/core/io/json.hpp"', "kernels may not include core/io"),
    ("core knows no core/io", "core/tensor.cpp", '#include "lamina/core/io/json.hpp"', "core may not include core/io"),
    ("nn and comm never meet", "nn/module.hpp", '#include "lamina/dist/comm/group.hpp"', "nn may not include dist/comm"),
    ("comm and nn never meet", "dist/comm/group.hpp", '#include "lamina/nn/module.hpp"', "dist/comm may not include nn"),
    ("schedules know no kernels", "dist/schedule/action.hpp", '#include "lamina/kernels/op.hpp"',
     "dist/schedule may not include kernels"),
    ("nobody includes tools", "models/mlp.hpp", '#include "lamina/tools/main.cpp"', "models may not include tools"),
    ("nobody includes tests", "models/mlp.hpp", '#include "lamina/tests/mlp_test.cpp"', "models may not include tests"),
    ("data is below the models", "models/data/images.hpp", '#include "lamina/models/mlp.hpp"',
     "models/data may not include models"),
    ("a library of another room", "nn/module.hpp", "#include <zlib.h>", "nn may not include zlib"),
    ("JPEG in models", "models/mlp.hpp", "#include <turbojpeg.h>", "models may not include libjpeg-turbo"),
    ("a command line in a library", "core/tensor.cpp", "#include <CLI/CLI.hpp>", "core may not include CLI11"),
    ("a library of no table", "core/tensor.cpp", "#include <boost/any.hpp>", "of no library in the table"),
    ("CUDA outside its files", "kernels/gelu/cpu.cpp", "#include <cuda_runtime.h>", "CUDA headers belong in"),
    ("CUDA in the tools", "tools/main.cpp", "#include <cuda.h>", "CUDA headers belong in"),
    ("Vulkan outside its files", "core/tensor.cpp", "#include <vulkan/vulkan.h>", "Vulkan headers belong in"),
    ("sockets outside the transports", "dist/comm/group.hpp", "#include <sys/socket.h>", "sockets headers belong in"),
    ("MPI outside the transports", "dist/train/runner.hpp", "#include <mpi.h>", "MPI headers belong in"),
    ("NCCL outside the transports", "dist/comm/group.hpp", "#include <nccl.h>", "NCCL headers belong in"),
    ("a file cycle", "core/tensor.hpp", '#include "lamina/core/tensor.cpp"', "files include each other"),
    ("a file that includes itself", "kernels/op.hpp", '#include "lamina/kernels/op.hpp"', "files include each other"),
    ("a room cycle", "dist/comm/group.hpp", '#include "lamina/dist/train/runner.hpp"', "rooms include each other"),
    ("a reference that sees its formula", "kernels/gelu/op.cpp", '#include "lamina/kernels/gelu/formula.h"',
     "shares no text with the kernels"),
    ("a reference that sees them through its header", "kernels/gelu/op.hpp", '#include "lamina/kernels/gelu/vector.hpp"',
     "kernels/gelu/op.cpp -> kernels/gelu/op.hpp -> kernels/gelu/vector.hpp"),
    ("std in vector code", "kernels/gelu/vector.hpp", "#include <cmath>", "inside the namespace of an instruction set"),
    ("std behind vector code", "kernels/cpu/simd/simd.hpp", "#include <cmath>",
     "inside the namespace of an instruction set"),
    ("an ordinary header in vector code", "kernels/gelu/vector.hpp", '#include "lamina/kernels/op.hpp"',
     "inside the namespace of an instruction set"),
    ("a file that is not there", "core/tensor.cpp", '#include "lamina/core/gone.hpp"', "no such file"),
    ("an include spelled by folder", "core/tensor.cpp", '#include "tensor.hpp"', 'is not spelled "lamina/..."'),
    ("hidden by white space", "core/tensor.cpp", '  #  include "lamina/nn/module.hpp"', "core may not include nn"),
]


def write(root, files):
    for path, text in files.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(text)


def problems_with(plant=None):
    with tempfile.TemporaryDirectory() as folder:
        tree, made = pathlib.Path(folder) / "tree", pathlib.Path(folder) / "made"
        files = dict(CLEAN)
        if plant:
            file, line = plant
            files[file] += line + "\n"
        write(tree, files)
        write(made / "lamina", GENERATED)
        return layering.check(tree, made)[1]


def main():
    failed = [f"the clean tree is not clean: {p}" for p in problems_with()]
    for what, file, line, report in FAULTS:
        if not any(report in p for p in problems_with((file, line))):
            failed.append(f"not found: {what}: {line} in {file}")
    layering.ROOMS["autograd"].remove("core")
    if not any(p.startswith("table: ") for p in problems_with()):
        failed.append("not found: a table that is not transitive")
    print("\n".join(failed) or f"{len(FAULTS) + 1} planted faults found")
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
