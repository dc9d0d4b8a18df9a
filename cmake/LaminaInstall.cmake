# Installs the rooms, their headers and a relocatable package: find_package(lamina).
include(CMakePackageConfigHelpers)

set(package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/lamina)

# What the rooms link that is not of this tree, the package file has to find again.
set(find_Threads::Threads "find_dependency(Threads)")
set(find_fmt::fmt "find_dependency(fmt)")
set(find_ZLIB::ZLIB "find_dependency(ZLIB)")
set(find_nlohmann_json::nlohmann_json "find_dependency(nlohmann_json)")
string(CONCAT find_lamina::xxhash
  "include(\"\${CMAKE_CURRENT_LIST_DIR}/LaminaXxhash.cmake\")\n"
  "if(NOT TARGET lamina::xxhash)\n"
  "  set(\${CMAKE_FIND_PACKAGE_NAME}_FOUND FALSE)\n"
  "  set(\${CMAKE_FIND_PACKAGE_NAME}_NOT_FOUND_MESSAGE \"lamina needs libxxhash (Debian: libxxhash-dev)\")\n"
  "  return()\n"
  "endif()")
set(LAMINA_FIND_DEPENDENCIES)
foreach(room IN LISTS LAMINA_ROOMS)
  get_target_property(links lamina_${room} INTERFACE_LINK_LIBRARIES)
  foreach(link IN LISTS links)
    string(REGEX REPLACE "^\\$<LINK_ONLY:(.*)>$" "\\1" link "${link}")
    if(DEFINED find_${link})
      list(APPEND LAMINA_FIND_DEPENDENCIES "${find_${link}}")
    elseif(link AND NOT link MATCHES "^lamina(::|_)")
      message(FATAL_ERROR "lamina_${room} links ${link}, which an installed lamina would not find: "
        "teach cmake/LaminaInstall.cmake")
    endif()
  endforeach()
endforeach()
list(REMOVE_DUPLICATES LAMINA_FIND_DEPENDENCIES)
string(REPLACE ";" "\n" LAMINA_FIND_DEPENDENCIES "${LAMINA_FIND_DEPENDENCIES}")

configure_file(${PROJECT_SOURCE_DIR}/cmake/lamina-config.cmake.in ${PROJECT_BINARY_DIR}/lamina-config.cmake @ONLY)
write_basic_package_version_file(${PROJECT_BINARY_DIR}/lamina-config-version.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/lamina-config.cmake ${PROJECT_BINARY_DIR}/lamina-config-version.cmake
  ${PROJECT_SOURCE_DIR}/cmake/LaminaXxhash.cmake DESTINATION ${package_dir})

foreach(room IN LISTS LAMINA_ROOMS)
  install(TARGETS lamina_${room} EXPORT lamina-targets ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR})
endforeach()
install(TARGETS lamina EXPORT lamina-targets)
install(EXPORT lamina-targets NAMESPACE lamina:: DESTINATION ${package_dir})

# The headers keep their tree, so that includes read as they do here. Looked for when installing: a new header needs no
# list. Not installed: what is compiled once per instruction set and the scalar formulas, which are for kernels only.
install(CODE "
  foreach(from \"${PROJECT_SOURCE_DIR}\" \"${LAMINA_GENERATED_DIR}/lamina\")
    foreach(room core kernels autograd nn dist models)
      file(GLOB_RECURSE headers RELATIVE \"\${from}\" \"\${from}/\${room}/*.hpp\")
      list(FILTER headers EXCLUDE REGEX \"/cpu/simd/|^(kernels|dist/comm)/.*(/|_)vector\\\\.hpp\$|^kernels/formula\\\\.hpp\$\")
      foreach(header IN LISTS headers)
        get_filename_component(folder \"\${header}\" DIRECTORY)
        file(INSTALL \"\${from}/\${header}\" DESTINATION
          \"\${CMAKE_INSTALL_PREFIX}/${CMAKE_INSTALL_INCLUDEDIR}/lamina/\${folder}\")
      endforeach()
    endforeach()
  endforeach()
")
install(FILES ${PROJECT_SOURCE_DIR}/LICENSE DESTINATION ${CMAKE_INSTALL_DATADIR}/doc/lamina)
if(TARGET lamina_program)
  install(TARGETS lamina_program RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
endif()
