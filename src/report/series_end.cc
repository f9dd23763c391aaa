#include "report/series_end.h"

#include <algorithm>

#include "plan/ladder.h"
#include "report/record_access.h"
#include "report/record_limits.h"

namespace epsweep {
namespace {

std::int64_t tokens_of(const Json& record) {
  return static_cast<std::int64_t>(find_number(record, "point.tokens_global").value_or(0));
}

// The lowest stop of the series counts; those of higher loads only repeat it.
void add_stop(const Json& record, SeriesEnd& end) {
  const auto at = find_number(record, "ladder_stop.at_tokens");
  if (!at) return;
  const auto tokens = static_cast<std::int64_t>(*at);
  if (end.refused && *end.refused <= tokens) return;
  end.refused = tokens;
  end.stopped_by = find_text(record, "ladder_stop.kind");
  end.reason = find_text(record, "ladder_stop.reason");
}

}  // namespace

std::string series_key_of(const TableRow& row) {
  Json axes = row.record->at("point");
  axes.erase("index");
  axes.erase("attempt");
  if (find_text(*row.record, "point.concurrency") != "listed") {
    axes.erase("tokens");
    axes.erase("tokens_global");
  }
  return row.dir + to_json_line(axes);
}

SeriesEnd series_end(const std::vector<TableRow>& rows) {
  SeriesEnd end;
  std::int64_t highest = 0;
  for (const TableRow& row : rows) {
    const Json& record = *row.record;
    const std::string state = find_text(record, "state");
    highest = std::max(highest, tokens_of(record));
    if (state != "skipped" && state != "stopped") {
      end.last_run = std::max(end.last_run.value_or(0), tokens_of(record));
    }
    add_stop(record, end);
    if (state == "stopped" && find_value(record, "ladder_stop") == nullptr) {
      end.cut_short = find_text(record, "reason");
    }
  }
  for (const TableRow& row : rows) {
    const std::int64_t tokens = tokens_of(*row.record);
    if (end.refused && tokens >= *end.refused) continue;
    if (is_within_objective(*row.record)) end.admitted = std::max(end.admitted.value_or(0), tokens);
  }
  if (!end.refused && end.cut_short.empty() && end.admitted == highest) {
    end.stopped_by = to_string(StopKind::ladder_end);
  }
  return end;
}

}  // namespace epsweep
