find_package(Threads REQUIRED)
find_package(OpenMP REQUIRED)
find_package(fmt REQUIRED)
find_package(spdlog REQUIRED)
find_package(yaml-cpp REQUIRED)
find_package(nlohmann_json REQUIRED)
find_package(CLI11 REQUIRED)
find_package(MPI REQUIRED COMPONENTS C)

add_library(epsweep_mpi_library INTERFACE)
target_link_libraries(epsweep_mpi_library INTERFACE MPI::MPI_C)
# Open MPI's C++ bindings are deprecated and bring warnings and unresolved symbols.
target_compile_definitions(epsweep_mpi_library INTERFACE OMPI_SKIP_MPICXX=1)

# Debian's dnnl-config.cmake insists on an OpenCL SDK that the library does not need.
find_path(DNNL_INCLUDE_DIR oneapi/dnnl/dnnl.hpp REQUIRED)
find_library(DNNL_LIBRARY dnnl REQUIRED)
add_library(DNNL::dnnl UNKNOWN IMPORTED)
set_target_properties(DNNL::dnnl PROPERTIES IMPORTED_LOCATION ${DNNL_LIBRARY}
                                            INTERFACE_INCLUDE_DIRECTORIES ${DNNL_INCLUDE_DIR})
