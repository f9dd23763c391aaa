#include "report/transport_check.h"

#include <algorithm>
#include <cctype>
#include <iterator>
#include <map>
#include <set>
#include <tuple>

#include <fmt/format.h>

#include "base/error.h"

namespace epsweep {
namespace {

std::string lower(std::string text) {
  std::ranges::transform(text, text.begin(), [](char c) {
    return static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  });
  return text;
}

std::string host_note(const RankPlaceFacts& from, const RankPlaceFacts& to) {
  if (from.host.empty() || to.host.empty()) return "";
  if (from.host == to.host) return fmt::format(", both on {}", from.host);
  return fmt::format(", {} and {}", from.host, to.host);
}

}  // namespace

const std::vector<std::string>& transport_names() {
  static const std::vector<std::string> names = {"nvlink", "pcie", "p2p",   "shm",
                                                 "ib",     "roce", "socket"};
  return names;
}

std::optional<std::string> transport_of_text(const std::string& text) {
  const std::string word = lower(text);
  if (std::ranges::find(transport_names(), word) != transport_names().end()) return word;
  for (const auto& [beginning, name] :
       {std::tuple{"p2p/", "p2p"}, {"shm/", "shm"}, {"net/ib", "ib"}, {"net/socket", "socket"}}) {
    if (word.starts_with(beginning)) return name;
  }
  return std::nullopt;
}

TransportCheck check_transports(const ExpectedTransport& expected,
                                const std::vector<PairTransport>& seen,
                                const std::vector<RankPlaceFacts>& ranks) {
  TransportCheck check;
  std::map<int, const RankPlaceFacts*> place_of;
  std::map<int, std::int64_t> group_sizes;
  for (const RankPlaceFacts& rank : ranks) {
    place_of[rank.rank] = &rank;
    ++group_sizes[rank.group];
  }
  for (const auto& [group, size] : group_sizes) {
    check.pairs += size * (size - 1);
  }
  std::set<std::tuple<int, int>> listed;
  for (const PairTransport& pair : seen) {
    EPS_EXPECT(place_of.contains(pair.from) && place_of.contains(pair.to),
               "a pair of ranks that are not there");
    const RankPlaceFacts &from = *place_of[pair.from], &to = *place_of[pair.to];
    if (from.group == to.group && pair.from != pair.to) listed.insert({pair.from, pair.to});
    const std::string& wanted =
        from.host == to.host ? expected.within_host : expected.between_hosts;
    if (pair.transport == wanted) continue;
    if (pair.transport == "p2p" && (wanted == "nvlink" || wanted == "pcie")) {
      ++check.pairs_undecided;
      continue;
    }
    if (++check.pairs_wrong > 1) continue;
    check.problem = fmt::format("ranks {} and {}{}: labelled {}, the log shows {}", pair.from,
                                pair.to, host_note(from, to), wanted, pair.transport);
  }
  if (check.pairs_wrong > 1) {
    check.problem += fmt::format("; {} more pairs", check.pairs_wrong - 1);
  }
  check.pairs_unlisted = check.pairs - std::ssize(listed);
  return check;
}

}  // namespace epsweep
