# Reads kernels/ops.def and writes what follows from it:
#   lamina/kernels/op_ids.hpp    forward declarations, OpId<T>, kOpCount
#   lamina/kernels/op_list.hpp   includes every record; LAMINA_FOR_EACH_OP(X)
#   LAMINA_OP_SOURCES            the sources of all folders
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/ops.def)
file(STRINGS ${CMAKE_CURRENT_SOURCE_DIR}/ops.def lines REGEX "^OPS\\(.*\\)$")
set(LAMINA_OP_SOURCES)
set(LAMINA_OP_FOLDERS)
set(ids)
set(forwards)
set(includes)
set(each)
set(count 0)
foreach(line IN LISTS lines)
  string(REGEX REPLACE "^OPS\\((.*)\\)$" "\\1" line "${line}")
  string(REPLACE "," ";" words "${line}")
  list(TRANSFORM words STRIP)
  list(POP_FRONT words folder)
  list(APPEND LAMINA_OP_FOLDERS ${folder})
  string(APPEND includes "#include \"lamina/kernels/${folder}/op.hpp\"\n")
  foreach(record IN LISTS words)
    string(APPEND forwards "struct ${record};\n")
    string(APPEND ids "template <>\nstruct OpId<${record}> {\n  static constexpr int value = ${count};\n};\n")
    string(APPEND each " \\\n  X(${record})")
    math(EXPR count "${count} + 1")
  endforeach()
  foreach(part op cpu)
    # Listed whether or not it exists: a forgotten file stops the build and is named.
    list(APPEND LAMINA_OP_SOURCES ${folder}/${part}.cpp)
  endforeach()
endforeach()
# A folder whose line was forgotten would just not be built.
file(GLOB headers CONFIGURE_DEPENDS RELATIVE ${CMAKE_CURRENT_SOURCE_DIR} ${CMAKE_CURRENT_SOURCE_DIR}/*/op.hpp)
foreach(header IN LISTS headers)
  get_filename_component(folder ${header} DIRECTORY)
  if(NOT folder IN_LIST LAMINA_OP_FOLDERS)
    message(FATAL_ERROR "kernels/${folder} is not in kernels/ops.def: add the line OPS(${folder}, <record>...)")
  endif()
endforeach()
set(generated ${LAMINA_GENERATED_DIR}/lamina/kernels)
file(CONFIGURE OUTPUT ${generated}/op_ids.hpp CONTENT
"// Generated from kernels/ops.def.
#pragma once

namespace lamina {

${forwards}
inline constexpr int kOpCount = ${count};

/// Position of an op in ops.def.
template <class T>
struct OpId;
${ids}
}  // namespace lamina
" @ONLY)
file(CONFIGURE OUTPUT ${generated}/op_list.hpp CONTENT
"// Generated from kernels/ops.def: every op, its free functions and its record.
#pragma once

${includes}
#define LAMINA_FOR_EACH_OP(X)${each}
" @ONLY)
