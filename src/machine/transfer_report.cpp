#include "machine/transfer_report.h"

#include <algorithm>
#include <array>

#include "base/format.h"

namespace weft::machine {
namespace {

constexpr std::size_t kNumColumns = 5;
using Row = std::array<std::string, kNumColumns>;
constexpr std::size_t kFirstNumber = 3;

Row row_of(const TransportUse& use) {
  return {std::string(transfer_type_name(use.type)), std::string(memory::kind_name(use.kind)),
          std::string(transfer_path_name(use.path)), std::to_string(use.messages), std::to_string(use.bytes)};
}

std::string aligned(const Row& row, const std::array<std::size_t, kNumColumns>& widths) {
  std::string line;
  for (std::size_t i = 0; i < row.size(); ++i) {
    line += i < kFirstNumber ? base::format("{:<{}}", row[i], widths[i] + 2)
                             : base::format("{:>{}}", row[i], widths[i] + 2);
  }
  return line;
}

// "0", "0-3,5"
std::string ranges(const std::vector<int>& pes) {
  std::string text;
  for (std::size_t first = 0; first < pes.size();) {
    std::size_t last = first;
    while (last + 1 < pes.size() && pes[last + 1] == pes[last] + 1) ++last;
    text += base::format("{}{}", first == 0 ? "" : ",", pes[first]);
    if (last > first) text += base::format("-{}", pes[last]);
    first = last + 1;
  }
  return text;
}

}  // namespace

std::string transfer_report(int pe, const std::vector<TransportUse>& uses,
                            const std::vector<PeerTransports>& peers) {
  std::vector<Row> rows = {{"transfer", "memory", "path", "messages", "bytes"}};
  for (const TransportUse& use : uses) rows.push_back(row_of(use));
  std::array<std::size_t, kNumColumns> widths{};
  for (const Row& row : rows) {
    for (std::size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], row[i].size());
  }
  std::string text;
  if (rows.size() == 1) text += base::format("weft: PE {}: nothing was moved\n", pe);
  for (std::size_t i = 0; rows.size() > 1 && i < rows.size(); ++i) {
    text += base::format("weft: PE {}: {}\n", pe, aligned(rows[i], widths));
  }
  for (const PeerTransports& peer : peers) {
    text += base::format("weft: PE {}: PE {} by {}\n", pe, ranges(peer.pes), peer.transports);
  }
  return text;
}

}  // namespace weft::machine
