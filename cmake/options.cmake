# Flags every target of ours is compiled with; third-party headers are SYSTEM and stay quiet.
add_library(epsweep_options INTERFACE)
target_include_directories(epsweep_options INTERFACE ${CMAKE_SOURCE_DIR}/src)
target_compile_options(
  epsweep_options
  INTERFACE -Wall
            -Wextra
            # Designated initializers leave the rest at its default on purpose.
            -Wno-missing-field-initializers
            -Wconversion
            -Wsign-conversion
            -Wshadow
            -Wnon-virtual-dtor
            -Woverloaded-virtual
            # GCC 12 sees ghosts in inlined std::string code (GCC bugs 105329, 105562).
            $<$<CXX_COMPILER_ID:GNU>:-Wno-restrict;-Wno-maybe-uninitialized>
            $<$<BOOL:${EPSWEEP_WERROR}>:-Werror>)
# Hot loops are compiled for several instruction sets and chosen at start-up. Not under sanitizers:
# their run-time is not ready when the choice is made.
set(EPSWEEP_MULTIVERSION)
if(CMAKE_SYSTEM_PROCESSOR MATCHES "x86_64|amd64" AND NOT EPSWEEP_SANITIZE)
  set(EPSWEEP_MULTIVERSION
      "__attribute__((target_clones(\"arch=x86-64-v4\",\"arch=x86-64-v3\",\"default\")))")
endif()
if(EPSWEEP_SANITIZE)
  add_compile_options(-fsanitize=${EPSWEEP_SANITIZE} -fno-omit-frame-pointer
                      -fno-sanitize-recover=all)
  add_link_options(-fsanitize=${EPSWEEP_SANITIZE})
endif()

# An object library of one src/ folder. Object libraries, because self-registering catalog entries
# vanish silently from static ones.
function(epsweep_folder name)
  cmake_parse_arguments(PARSE_ARGV 1 ARG "" "" "SOURCES;LINK")
  add_library(epsweep_${name} OBJECT ${ARG_SOURCES})
  target_link_libraries(epsweep_${name} PUBLIC epsweep_options ${ARG_LINK})
endfunction()
