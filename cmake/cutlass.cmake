# CUTLASS is headers only: from a path, from build/cutlass where launch/environment.sh puts the PyPI
# package nvidia-cutlass, or from that package among those of python3. Compiling its kernels takes
# about a minute each; EPSWEEP_CUTLASS_INCLUDE_DIR=OFF leaves them out.
set(EPSWEEP_WITH_CUTLASS OFF)
if(NOT EPSWEEP_WITH_CUDA)
  return()
endif()

set(epsweep_cutlass_in_package cutlass_library/source/include)
execute_process(
  COMMAND python3 -c "import sysconfig; print(sysconfig.get_path('purelib'))"
  OUTPUT_VARIABLE epsweep_python_packages
  OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
find_path(
  EPSWEEP_CUTLASS_INCLUDE_DIR cutlass/gemm/group_array_problem_shape.hpp
  HINTS ${CMAKE_SOURCE_DIR}/build/cutlass/${epsweep_cutlass_in_package}
        ${epsweep_python_packages}/${epsweep_cutlass_in_package}
  DOC "Folder of cutlass/ and cute/; OFF for none")

if(NOT EPSWEEP_CUTLASS_INCLUDE_DIR)
  message(STATUS "CUTLASS kernels: not built (EPSWEEP_CUTLASS_INCLUDE_DIR, or pip install --no-deps "
                 "nvidia-cutlass)")
  return()
endif()
if(NOT EPSWEEP_CUDA_ARCHITECTURES MATCHES "90|native|all")
  message(STATUS "CUTLASS kernels: not built, they are for architecture 90")
  return()
endif()
set(epsweep_cutlass_version 0)
if(EXISTS ${EPSWEEP_CUTLASS_INCLUDE_DIR}/cutlass/version.h)
  file(STRINGS ${EPSWEEP_CUTLASS_INCLUDE_DIR}/cutlass/version.h epsweep_cutlass_lines
       REGEX "#define CUTLASS_(MAJOR|MINOR|PATCH) ")
  string(REGEX MATCHALL "[0-9]+" epsweep_cutlass_version "${epsweep_cutlass_lines}")
  list(JOIN epsweep_cutlass_version "." epsweep_cutlass_version)
endif()
if(epsweep_cutlass_version VERSION_LESS 4.0)
  message(STATUS "CUTLASS kernels: not built, ${EPSWEEP_CUTLASS_INCLUDE_DIR} has no CUTLASS 4")
  return()
endif()
set(EPSWEEP_WITH_CUTLASS ON)
message(STATUS "CUTLASS kernels: ${epsweep_cutlass_version} in ${EPSWEEP_CUTLASS_INCLUDE_DIR}")
