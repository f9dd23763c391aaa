// What a point's routing and placement mean in rows, bytes and operations.
#pragma once

#include "pipeline/rank_work.h"
#include "report/point_record.h"

namespace epsweep {

// Of the whole group, whatever the rank.
PointWorkload workload_facts(const RankWork& work);

}  // namespace epsweep
