# lamina::xxhash: Debian's libxxhash ships no CMake package. Installed beside lamina-config.cmake, so that an installed
# lamina looks for the library on the machine where it is used.
if(NOT TARGET lamina::xxhash)
  find_library(LAMINA_XXHASH_LIBRARY xxhash)
  find_path(LAMINA_XXHASH_INCLUDE_DIR xxhash.h)
  mark_as_advanced(LAMINA_XXHASH_LIBRARY LAMINA_XXHASH_INCLUDE_DIR)
  if(LAMINA_XXHASH_LIBRARY AND LAMINA_XXHASH_INCLUDE_DIR)
    add_library(lamina::xxhash UNKNOWN IMPORTED)
    set_target_properties(lamina::xxhash PROPERTIES
      IMPORTED_LOCATION "${LAMINA_XXHASH_LIBRARY}"
      INTERFACE_INCLUDE_DIRECTORIES "${LAMINA_XXHASH_INCLUDE_DIR}")
  endif()
endif()
