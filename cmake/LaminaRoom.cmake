# lamina_room(<name> SOURCES <files> DEPENDS <targets> [PRIVATE_DEPENDS <targets>])
# One static library a room, lamina::<name>. Public dependencies are the rooms its headers may include.
function(lamina_room name)
  cmake_parse_arguments(ARG "" "" "SOURCES;DEPENDS;PRIVATE_DEPENDS" ${ARGN})
  set(target lamina_${name})
  add_library(${target} STATIC ${ARG_SOURCES})
  add_library(lamina::${name} ALIAS ${target})
  target_include_directories(${target} PUBLIC
    $<BUILD_INTERFACE:${LAMINA_INCLUDE_DIR}> $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
  target_link_libraries(${target} PUBLIC ${ARG_DEPENDS} PRIVATE ${ARG_PRIVATE_DEPENDS})
  set_target_properties(${target} PROPERTIES EXPORT_NAME ${name} POSITION_INDEPENDENT_CODE ON)
  lamina_compile_options(${target})
  set_property(GLOBAL APPEND PROPERTY LAMINA_ROOMS ${name})  # lamina::lamina and the package are made of these
endfunction()

# How everything of ours is compiled; nothing of it reaches consumers but the language level.
function(lamina_compile_options target)
  target_compile_features(${target} PUBLIC cxx_std_20)
  set_target_properties(${target} PROPERTIES CXX_EXTENSIONS OFF CXX_VISIBILITY_PRESET hidden
    VISIBILITY_INLINES_HIDDEN ON)
  target_compile_options(${target} PRIVATE -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wno-sign-conversion
    $<$<BOOL:${LAMINA_WERROR}>:-Werror> -Wno-psabi
    # GCC 12 reports these for code of its own headers and of nlohmann-json that is right.
    $<$<CXX_COMPILER_ID:GNU>:-Wno-maybe-uninitialized -Wno-restrict> -ffp-contract=off)
  # As a folder of a project without a build type the kernels would run at a tenth of their speed.
  if(NOT CMAKE_CONFIGURATION_TYPES AND NOT CMAKE_BUILD_TYPE AND NOT CMAKE_CXX_FLAGS MATCHES "(^| )-O")
    target_compile_options(${target} BEFORE PRIVATE -O2)  # whatever that project says itself comes later
  endif()
  # No path of the machine that built it ends up in a library.
  target_compile_options(${target} PRIVATE
    -fmacro-prefix-map=${LAMINA_INCLUDE_DIR}/= -fmacro-prefix-map=${PROJECT_SOURCE_DIR}/=lamina/)
  if(CMAKE_CXX_COMPILER_ID MATCHES Clang)
    target_compile_options(${target} PRIVATE -Wthread-safety)
  endif()
  if(LAMINA_SANITIZE)
    target_compile_options(${target} PRIVATE -fsanitize=${LAMINA_SANITIZE} -fno-omit-frame-pointer
      -fno-sanitize-recover=all)
    target_link_options(${target} PUBLIC -fsanitize=${LAMINA_SANITIZE})
  endif()
endfunction()
