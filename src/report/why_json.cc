#include "report/why.h"

namespace epsweep {
namespace {

Json interval_json(const std::optional<Interval>& interval) {
  if (!interval) return nullptr;
  return Json::array({interval->low, interval->high});
}

Json terms_json(const Terms& terms) {
  Json causes = Json::object();
  for (std::size_t i = 0; i < kNumCauses; ++i) {
    causes[std::string(kCauseNames[i])] = terms.values()[i];
  }
  return {{"difference_us", terms.measured_us()}, {"terms_us", std::move(causes)}};
}

Json path_json(const std::optional<Path>& path) {
  if (!path) return nullptr;
  return {{"concurrency", terms_json(path->concurrency)}, {"width", terms_json(path->width)}};
}

Json attribution_json(const std::optional<Attribution>& attribution) {
  if (!attribution) return nullptr;
  Json json = terms_json(attribution->total);
  Json intervals = nullptr;
  if (attribution->total_intervals) {
    intervals = Json::object();
    for (std::size_t i = 0; i < kNumCauses; ++i) {
      intervals[std::string(kCauseNames[i])] = interval_json((*attribution->total_intervals)[i]);
    }
  }
  json["terms_interval_us"] = std::move(intervals);
  json["effects"] = path_json(attribution->effects);
  json["width_first"] = path_json(attribution->width_first);
  json["concurrency_first"] = path_json(attribution->concurrency_first);
  json["concurrency_interval_us"] = interval_json(attribution->concurrency_interval);
  json["width_interval_us"] = interval_json(attribution->width_interval);
  return json;
}

Json side_json(const PairSide& side, const SideNumbers& numbers) {
  return {{"ep_size", side.ep_size},
          {"tokens_global", side.tokens_global},
          {"num_repeats", numbers.layer_us.size()},
          {"layer_p50_us", numbers.layer_us},
          {"tokens_per_s_per_rank", numbers.tokens_per_s_per_rank},
          {"mean_rows_per_expert", numbers.mean_rows_per_expert},
          {"why_not", side.why_not.empty() ? Json() : Json(side.why_not)}};
}

}  // namespace

Json crossings_json(const std::vector<EpPair>& pairs) {
  Json list = Json::array();
  for (const PairCrossings& ladder : pair_crossings(pairs)) {
    for (const Crossing& crossing : ladder.crossings) {
      const bool starts = crossing.kind == CrossingKind::starts_to_win;
      list.push_back({{"series", ladder.first->series},
                      {"concurrency", ladder.first->mode},
                      {"a", ladder.first->a.ep_size},
                      {"b", ladder.first->b.ep_size},
                      {"kind", starts ? "starts_to_win" : "stops_winning"},
                      {"after_tokens", crossing.after},
                      {"by_tokens", crossing.by},
                      {"estimate_tokens", crossing.estimate ? Json(*crossing.estimate) : Json()}});
    }
  }
  return list;
}

Json why_json(const std::vector<EpPair>& pairs) {
  Json list = Json::array();
  for (const EpPair& pair : pairs) {
    const Why why = explain(pair);
    list.push_back({{"held", pair.held},
                    {"concurrency", pair.mode},
                    {"tokens", pair.load},
                    {"a", side_json(pair.a, why.a)},
                    {"b", side_json(pair.b, why.b)},
                    {"verdict", kPairVerdictNames[static_cast<std::size_t>(why.verdict)]},
                    {"ratio", why.difference ? Json(why.difference->ratio) : Json()},
                    {"attribution", attribution_json(why.attribution)},
                    {"text", why.text}});
  }
  return list;
}

}  // namespace epsweep
