// Where the results of a run go, whatever engine ran it.
#pragma once

#include <string>

#include "app/commands.h"
#include "base/json.h"
#include "plan/sweep_spec.h"
#include "report/result_file.h"

namespace epsweep {

// "2026-01-31T12:00:00Z"
std::string utc_now();

// An explicit directory is used as it is; a made-up one gets a number if it is taken. Throws as
// RunDirectory::create does.
RunDirectory create_results(const RunCommand& command, const SweepSpec& spec, const Json& run);

// Completes run.json and prints the report.
void finish_results(RunDirectory& results, Json run_facts, int exit_code);

}  // namespace epsweep
