"""Who may include whom: scans every include of the tree against the tables below. Only Python's standard library.

  layering.py TREE                    lists what breaks a rule, one a line, and ends with 1 if there is anything
  layering.py TREE --generated DIR    with the headers that the build makes, DIR/lamina/...
  layering.py TREE --graph            prints which room includes which
"""

import argparse
import collections
import pathlib
import re
import sys

# ---- the tables ----

# Each room is the files under its folder that are in no deeper room. The rooms it may include, all of them: what those
# include in turn must be listed too. ANYTHING: the rooms that nobody else may include.
ANYTHING = object()
ROOMS = {
    "core": [],
    "core/io": ["core"],
    "kernels": ["core"],
    "autograd": ["kernels", "core"],
    "nn": ["autograd", "kernels", "core/io", "core"],
    "dist/comm": ["core/io", "core"],
    "dist/schedule": ["core/io", "core"],
    "dist/train": ["nn", "dist/comm", "dist/schedule", "autograd", "kernels", "core/io", "core"],
    "models": ["models/data", "nn", "dist/train", "dist/comm", "dist/schedule", "autograd", "kernels", "core/io", "core"],
    "models/data": ["nn", "dist/train", "dist/comm", "dist/schedule", "autograd", "kernels", "core/io", "core"],
    "models/envs": ["nn", "autograd", "kernels", "core/io", "core"],
    "tools": ANYTHING,
    "bench": ANYTHING,
    "tests": ANYTHING,
    "examples": ANYTHING,
}

# Libraries, by the headers that name them, and the rooms (or path patterns) that may. All rooms have STANDARD and
# SYSTEM; the rooms that may include anything also have every library, but for the ones confined to a backend.
LIBRARIES = {
    "fmt": (r"fmt/.*", ["core", "core/io", "kernels", "autograd", "nn", "dist/comm", "dist/schedule", "dist/train",
                        "models", "models/data", "models/envs"]),
    "zlib": (r"zlib\.h", ["core/io"]),
    "nlohmann-json": (r"nlohmann/.*", ["core/io", "nn", "dist/train", "models", "models/data"]),
    "xxhash": (r"xxhash\.h|xxh3\.h", ["core/io"]),
    "libjpeg-turbo": (r"turbojpeg\.h|jpeglib\.h|jerror\.h", ["models/data"]),
    "libpng": (r"png\.h", ["models/data"]),
    "MuJoCo": (r"mujoco/.*", ["models/envs"]),
    "CLI11": (r"CLI/.*", []),
    "GoogleTest": (r"g(test|mock)/.*", []),
    "Google Benchmark": (r"benchmark/.*", []),
}
# Confined to the places that are made for them, whatever the room.
CONFINED = {
    "CUDA": (r"(cuda|cublas|cudnn|curand|nvrtc|nvml|nvToolsExt|cooperative_groups)\w*\.(h|hpp|cuh)|mma\.h|"
             r"(cuda|cutlass|cute|cub|thrust|nvtx3)/.*", r"kernels/cuda/.*|kernels/.*\.cu"),
    "Vulkan": (r"vulkan/.*|volk\.h|spirv.*|shaderc/.*|vk_mem_alloc\.h", r"kernels/vulkan/.*|kernels/.*\.comp"),
    "sockets": (r"sys/socket\.h|sys/un\.h|netinet/.*|arpa/inet\.h|netdb\.h|net/.*|ifaddrs\.h",
                r"dist/comm/transport/.*|tests/.*|bench/.*"),
    "MPI": (r"mpi\.h", r"dist/comm/transport/.*|tests/.*|bench/.*"),
    "NCCL": (r"nccl\.h", r"dist/comm/transport/.*|tests/.*|bench/.*"),
}

STANDARD = set("""
algorithm any array atomic barrier bit bitset cassert ccomplex cctype cerrno cfenv cfloat charconv chrono cinttypes
climits clocale cmath codecvt compare complex concepts condition_variable coroutine csetjmp csignal cstdarg cstdbool
cstddef cstdint cstdio cstdlib cstring ctgmath ctime cuchar cwchar cwctype deque exception execution filesystem format
forward_list fstream functional future initializer_list iomanip ios iosfwd iostream istream iterator latch limits list
locale map memory memory_resource mutex new numbers numeric optional ostream queue random ranges ratio regex
scoped_allocator semaphore set shared_mutex source_location span sstream stack stdexcept stop_token streambuf string
string_view strstream syncstream system_error thread tuple type_traits typeindex typeinfo unordered_map unordered_set
utility valarray variant vector version
""".split())
# The operating system's and the compiler's own headers.
SYSTEM = re.compile(r"(unistd|fcntl|sched|pthread|signal|dlfcn|poll|termios|errno|time|limits|link|spawn|glob|cpuid|pwd|"
                    r"elf|execinfo|[a-z0-9]+intrin|arm_neon)\.h|(sys|linux|asm|bits)/.*\.h")

# Compiled once per instruction set inside a namespace, and shared with other languages: what a reference must not see,
# and what must not see anything outside.
REGION = re.compile(r"kernels/cpu/simd/.*|kernels/.*/([^/]*_)?vector\.hpp|kernels/.*/formula\.h|kernels/formula\.hpp")
# The file that opens those regions: to it the rule against including others does not apply.
REGION_ENTRY = "kernels/cpu/simd/for_each_isa.hpp"
REFERENCE = re.compile(r"kernels/[^/]+/op\.cpp")
VECTOR = re.compile(r"kernels/.*/(([^/]*_)?vector\.hpp|formula\.h)")

SUFFIXES = {".hpp", ".h", ".cpp", ".cu", ".cuh", ".comp", ".glsl"}

# ---- reading the tree ----

INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]*(?:<([^>]*)>|"([^"]*)"|(\w+))', re.M)
# for_each_isa.hpp includes the file that a kernel names so.
NAMED = re.compile(r'^[ \t]*#[ \t]*define[ \t]+\w+[ \t]+"(lamina/[^"]+)"', re.M)
COMMENT = re.compile(r'//[^\n]*|/\*.*?\*/|"(?:\\.|[^"\\\n])*"', re.S)


def without_comments(text):
    return COMMENT.sub(lambda m: m.group(0) if m.group(0).startswith('"') else re.sub(r"[^\n]", " ", m.group(0)), text)


def room_of(path):
    """The deepest room whose folder the path is in, or None."""
    parts = path.split("/")
    for n in range(len(parts) - 1, 0, -1):
        name = "/".join(parts[:n])
        if name in ROOMS:
            return name
    return None


class Tree:
    def __init__(self, root, generated=None):
        self.files = {}     # path -> [(line, path of the included file)]
        self.externals = {}  # path -> [(line, header)]
        self.problems = []
        for top in sorted({name.split("/")[0] for name in ROOMS}):
            for file in sorted((root / top).rglob("*")):
                if file.suffix in SUFFIXES and file.is_file():
                    self.read(root, file, [root, generated])
        for file in sorted(generated.rglob("*.hpp")) if generated else []:
            self.read(generated, file, [root, generated])

    def read(self, root, file, places):
        path = str(file.relative_to(root))
        text = without_comments(file.read_text(errors="replace"))
        inner, outer = [], []
        for pattern in (INCLUDE, NAMED):
            for m in pattern.finditer(text):
                line = text.count("\n", 0, m.start()) + 1
                angled, quoted = (m.group(1), m.group(2)) if pattern is INCLUDE else (None, m.group(1))
                if angled is not None:
                    outer.append((line, angled))
                elif quoted is None:
                    continue
                elif quoted.startswith("lamina/"):
                    target = quoted[len("lamina/"):]
                    if any(place and (place / target).is_file() for place in places):
                        inner.append((line, target))
                    else:
                        self.problem(path, line, f"no such file: {quoted}")
                elif room_of(path) is not None and ROOMS[room_of(path)] is not ANYTHING:
                    self.problem(path, line, f'"{quoted}" is not spelled "lamina/..."')
                else:
                    for base in (file.parent, root):
                        if (base / quoted).is_file():
                            inner.append((line, str((base / quoted).resolve().relative_to(root))))
                            break
        self.files[path], self.externals[path] = inner, outer

    def problem(self, path, line, text):
        self.problems.append(f"{path}:{line}: {text}")

    def reached(self, start):
        """Every file that `start` includes, however deep, with the chain that leads there."""
        chains = {start: [start]}
        todo = collections.deque([start])
        while todo:
            at = todo.popleft()
            for _, target in self.files.get(at, []):
                if target not in chains:
                    chains[target] = chains[at] + [target]
                    todo.append(target)
        return chains


def cycles(graph):
    """The strongly connected components of more than one node, or of one that points at itself (Tarjan)."""
    index, low, stack, on_stack, found = {}, {}, [], set(), []
    for root in graph:
        if root in index:
            continue
        work = [(root, iter(graph[root]))]
        index[root] = low[root] = len(index)
        stack.append(root)
        on_stack.add(root)
        while work:
            node, targets = work[-1]
            target = next(targets, None)
            if target is None:
                work.pop()
                if work:
                    low[work[-1][0]] = min(low[work[-1][0]], low[node])
                if low[node] == index[node]:
                    component = []
                    while not component or component[-1] != node:
                        component.append(stack.pop())
                        on_stack.discard(component[-1])
                    if len(component) > 1 or node in graph[node]:
                        found.append(sorted(component))
            elif target not in graph:
                continue
            elif target not in index:
                index[target] = low[target] = len(index)
                stack.append(target)
                on_stack.add(target)
                work.append((target, iter(graph[target])))
            elif target in on_stack:
                low[node] = min(low[node], index[target])
    return found


# ---- the rules ----

def check_table(problems):
    """What a room may include it may include with all that comes with it."""
    for room, allowed in ROOMS.items():
        for other in allowed if allowed is not ANYTHING else []:
            for further in ROOMS[other]:
                if further not in allowed:
                    problems.append(f"table: {room} may include {other} but not {further}, which {other} may")


def check_rooms(tree):
    for path, includes in tree.files.items():
        room = room_of(path)
        if room is None:
            tree.problem(path, 1, "is in no room of the table")
            continue
        for line, target in includes:
            to = room_of(target)
            if to != room and ROOMS[room] is not ANYTHING and to not in ROOMS[room]:
                tree.problem(path, line, f"{room} may not include {to} (lamina/{target})")


def check_externals(tree):
    for path, headers in tree.externals.items():
        room = room_of(path)
        for line, header in headers:
            confined = [(name, where) for name, (what, where) in CONFINED.items() if re.fullmatch(what, header)]
            library = [(name, rooms) for name, (what, rooms) in LIBRARIES.items() if re.fullmatch(what, header)]
            if confined:
                name, where = confined[0]
                if not re.fullmatch(where, path):
                    tree.problem(path, line, f"<{header}>: {name} headers belong in {where} only")
            elif header in STANDARD or SYSTEM.fullmatch(header) or room is None or ROOMS[room] is ANYTHING:
                continue
            elif not library:
                tree.problem(path, line, f"<{header}> is of no library in the table")
            elif room not in library[0][1]:
                tree.problem(path, line, f"{room} may not include {library[0][0]} (<{header}>)")


def check_cycles(tree):
    for component in cycles({path: [t for _, t in includes] for path, includes in tree.files.items()}):
        tree.problems.append(f"files include each other: {' '.join(component)}")
    rooms = room_graph(tree)
    for component in cycles({room: sorted(rooms[room]) for room in rooms}):
        tree.problems.append(f"rooms include each other: {' '.join(component)}")


def check_regions(tree):
    for path in tree.files:
        if REFERENCE.fullmatch(path):
            for target, chain in tree.reached(path).items():
                if REGION.fullmatch(target):
                    tree.problem(path, 1, f"a reference shares no text with the kernels: {' -> '.join(chain)}")
        if VECTOR.fullmatch(path) or (REGION.fullmatch(path) and path != REGION_ENTRY):
            for line, header in tree.externals[path]:
                tree.problem(path, line, f"<{header}> inside the namespace of an instruction set")
            for line, target in tree.files[path]:
                if not REGION.fullmatch(target) or target == REGION_ENTRY:
                    tree.problem(path, line, f"lamina/{target} inside the namespace of an instruction set")


def room_graph(tree):
    graph = {room: set() for room in ROOMS}
    for path, includes in tree.files.items():
        for _, target in includes:
            if room_of(path) and room_of(target) and room_of(path) != room_of(target):
                graph[room_of(path)].add(room_of(target))
    return graph


def check(root, generated=None):
    """The tree at `root`, and all its violations as 'file:line: what'. `generated` holds lamina/... as the build does."""
    tree = Tree(pathlib.Path(root).resolve(), generated and pathlib.Path(generated).resolve() / "lamina")
    check_table(tree.problems)
    for rule in (check_rooms, check_externals, check_cycles, check_regions):
        rule(tree)
    return tree, sorted(set(tree.problems))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("tree", type=pathlib.Path)
    parser.add_argument("--generated", type=pathlib.Path)
    parser.add_argument("--graph", action="store_true")
    a = parser.parse_args()
    tree, problems = check(a.tree, a.generated)
    if a.graph:
        for room, targets in room_graph(tree).items():
            if targets:
                print(f"{room} -> {', '.join(sorted(targets))}")
    for problem in problems:
        print(problem)
    print(f"{len(tree.files)} files, {sum(map(len, tree.files.values()))} includes of ours, {len(problems)} violations")
    sys.exit(1 if problems or len(tree.files) < 10 else 0)


if __name__ == "__main__":
    main()
