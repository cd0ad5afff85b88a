#include "slots/rank_map.h"

#include <charconv>
#include <cstddef>
#include <fstream>

#include "base/format.h"
#include "program/refusal.h"

namespace weft::mpi_host {

namespace {

using base::format;

// Text without the blanks around it, and without a comment that begins with '#'.
std::string content_of(const std::string& line) {
  const std::string text = line.substr(0, line.find('#'));
  const std::size_t begin = text.find_first_not_of(" \t\r");
  if (begin == std::string::npos) return {};
  return text.substr(begin, text.find_last_not_of(" \t\r") - begin + 1);
}

std::vector<int> read_map(const std::string& path, int num_ranks, int num_pes) {
  std::ifstream file(path);
  if (!file) {
    throw Refusal(
        format("--rank-map {}: the file cannot be read; give block, round-robin, or a file with a PE number "
               "per line",
               path));
  }
  std::vector<int> pes;
  int line_number = 0;
  for (std::string line; std::getline(file, line);) {
    ++line_number;
    const std::string text = content_of(line);
    if (text.empty()) continue;
    int pe = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), pe);
    if (error != std::errc() || end != text.data() + text.size() || pe < 0 || pe >= num_pes) {
      throw Refusal(format("{}:{}: '{}' is no PE of this job; give a number from 0 to {}, the PE of rank {}",
                           path, line_number, text.substr(0, 40), num_pes - 1, pes.size()));
    }
    pes.push_back(pe);
    if (pes.size() > static_cast<std::size_t>(num_ranks)) break;
  }
  if (pes.size() != static_cast<std::size_t>(num_ranks)) {
    throw Refusal(format(
        "{}: has {} lines with a PE number, and there are {} ranks; give a line per rank", path,
        pes.size() > static_cast<std::size_t>(num_ranks) ? "more" : format("{}", pes.size()), num_ranks));
  }
  return pes;
}

void check_all_used(const std::vector<int>& pes, int num_pes, const std::string& path) {
  std::vector<bool> used(static_cast<std::size_t>(num_pes));
  for (const int pe : pes) used[static_cast<std::size_t>(pe)] = true;
  for (int pe = 0; pe < num_pes; ++pe) {
    if (!used[static_cast<std::size_t>(pe)])
      throw Refusal(format("{}: gives PE {} no rank; give it one, or start fewer PEs (-n)", path, pe));
  }
}

}  // namespace

std::vector<int> map_ranks(int num_ranks, int num_pes, const std::string& how) {
  if (num_ranks < num_pes || num_ranks > kMaxRanks) {
    throw Refusal(format("--ranks {}: {} PEs have from {} to {} ranks, at least one each", num_ranks, num_pes,
                         num_pes, kMaxRanks));
  }
  if (how != "block" && how != "round-robin") {
    std::vector<int> pes = read_map(how, num_ranks, num_pes);
    check_all_used(pes, num_pes, how);
    return pes;
  }
  std::vector<int> pes(static_cast<std::size_t>(num_ranks));
  for (int rank = 0; rank < num_ranks; ++rank) {
    const auto in_block = static_cast<int>(static_cast<long long>(rank) * num_pes / num_ranks);
    pes[static_cast<std::size_t>(rank)] = how == "block" ? in_block : rank % num_pes;
  }
  return pes;
}

}  // namespace weft::mpi_host
