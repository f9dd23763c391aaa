# As several ranks: the CUDA backend against the CPU's, and orders of streams and threads.
add_executable(hostcuda_layer_tests interleaving_test.cc layer_equality_test.cc layer_scenarios.cc
                                  ${CMAKE_SOURCE_DIR}/tests/support/mpi_main.cc)
# The same engine with one mistake, told by the addresses of its waits.
add_executable(hostcuda_mutants layer_scenarios.cc mutants.cc)
set_target_properties(hostcuda_mutants PROPERTIES ENABLE_EXPORTS ON)
foreach(program hostcuda_layer_tests hostcuda_mutants)
  target_link_libraries(
    ${program}
    PRIVATE hostcuda
            GTest::gtest
            epsweep_base
            epsweep_plan
            epsweep_workload
            epsweep_mpi
            epsweep_cpu
            epsweep_pipeline)
endforeach()
foreach(ranks 1 2 4 8)
  add_test(NAME hostcuda_layer_np${ranks} COMMAND mpirun -np ${ranks}
                                                  $<TARGET_FILE:hostcuda_layer_tests>
                                                  --gtest_filter=CudaLayer.*)
endforeach()
foreach(ranks 2 4)
  add_test(NAME hostcuda_interleavings_np${ranks}
           COMMAND mpirun -np ${ranks} $<TARGET_FILE:hostcuda_layer_tests>
                   --gtest_filter=Interleaving.*)
endforeach()

add_executable(hostcuda_mutation_tests mutation_test.cc ${CMAKE_SOURCE_DIR}/tests/support/program.cc)
target_compile_definitions(
  hostcuda_mutation_tests
  PRIVATE EPSWEEP_SOURCE_DIR="${CMAKE_SOURCE_DIR}" EPSWEEP_PROGRAM="$<TARGET_FILE:epsweep>"
          EPSWEEP_MUTANTS="$<TARGET_FILE:hostcuda_mutants>")
target_link_libraries(
  hostcuda_mutation_tests
  PRIVATE hostcuda
          GTest::gtest
          GTest::gtest_main
          epsweep_base
          epsweep_plan
          epsweep_workload
          epsweep_costs
          epsweep_mpi
          epsweep_report)
add_test(NAME hostcuda_mutations COMMAND hostcuda_mutation_tests)

set_tests_properties(
  hostcuda_layer_np1
  hostcuda_layer_np2
  hostcuda_layer_np4
  hostcuda_layer_np8
  hostcuda_interleavings_np2
  hostcuda_interleavings_np4
  hostcuda_mutations
  PROPERTIES LABELS hostcuda PROCESSORS 2 TIMEOUT 900 ENVIRONMENT "${EPSWEEP_MPI_TEST_ENVIRONMENT}")
# Some forty starts of ranks.
set_tests_properties(hostcuda_mutations PROPERTIES TIMEOUT 900)
