#include "models/mpi/file/hints.h"

#include <algorithm>
#include <charconv>
#include <limits>
#include <optional>
#include <string>
#include <string_view>

namespace weft::mpi {

namespace {

// docs/decisions/mpi-files.md has the measurements.
constexpr int kMostAggregators = 8;
constexpr std::int64_t kBufferBytes = std::int64_t{1} << 20;
constexpr std::int64_t kSieveBytes = std::int64_t{4} << 20;
constexpr std::int64_t kSieveGapBytes = 4096;
constexpr std::int64_t kMostBufferBytes = std::int64_t{1} << 31;

std::optional<std::int64_t> number_in(std::string_view text, std::int64_t least, std::int64_t most) {
  std::int64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size() || number < least) return std::nullopt;
  return std::min(number, most);
}

std::optional<AggregatorUse> use_of(std::string_view text) {
  if (text == "enable") return AggregatorUse::kAlways;
  if (text == "disable") return AggregatorUse::kNever;
  if (text == "automatic") return AggregatorUse::kIfUseful;
  return std::nullopt;
}

std::string_view name_of(AggregatorUse use) {
  switch (use) {
    case AggregatorUse::kAlways:
      return "enable";
    case AggregatorUse::kNever:
      return "disable";
    case AggregatorUse::kIfUseful:
      break;
  }
  return "automatic";
}

void set_pair(Info::Pairs& pairs, std::string_view key, std::string_view value) {
  const auto found = std::ranges::find(pairs, key, &Info::Pairs::value_type::first);
  if (found == pairs.end()) {
    pairs.emplace_back(key, value);
  } else {
    found->second = value;
  }
}

void use_sieving(std::string_view value, FileHints& hints) {
  if (value == "enable") hints.sieving.most_gap_bytes = std::numeric_limits<std::int64_t>::max();
  if (value == "disable") hints.sieving.most_gap_bytes = -1;
  if (value == "automatic") hints.sieving.most_gap_bytes = kSieveGapBytes;
}

void use_hint(std::string_view key, std::string_view value, int num_processes, FileHints& hints) {
  if (key == "romio_cb_read") hints.read_use = use_of(value).value_or(hints.read_use);
  if (key == "romio_cb_write") hints.write_use = use_of(value).value_or(hints.write_use);
  if (key == "romio_ds_read") use_sieving(value, hints);
  if (key == "cb_nodes") {
    const std::optional<std::int64_t> number = number_in(value, 1, num_processes);
    hints.num_aggregators = static_cast<std::int32_t>(number.value_or(hints.num_aggregators));
  }
  if (key == "cb_buffer_size")
    hints.buffer_bytes = number_in(value, 1, kMostBufferBytes).value_or(hints.buffer_bytes);
  if (key == "ind_rd_buffer_size")
    hints.sieving.buffer_bytes = number_in(value, 1, kMostBufferBytes).value_or(hints.sieving.buffer_bytes);
}

// What holds, whatever the program has asked for.
void tell_values(FileHints& hints) {
  set_pair(hints.pairs, "cb_nodes", std::to_string(hints.num_aggregators));
  set_pair(hints.pairs, "cb_buffer_size", std::to_string(hints.buffer_bytes));
  set_pair(hints.pairs, "romio_cb_read", name_of(hints.read_use));
  set_pair(hints.pairs, "romio_cb_write", name_of(hints.write_use));
  set_pair(hints.pairs, "ind_rd_buffer_size", std::to_string(hints.sieving.buffer_bytes));
  const std::int64_t gap = hints.sieving.most_gap_bytes;
  set_pair(hints.pairs, "romio_ds_read", gap < 0 ? "disable" : gap > kSieveGapBytes ? "enable" : "automatic");
  set_pair(hints.pairs, "romio_ds_write", "disable");
}

}  // namespace

FileHints default_file_hints(int num_processes) {
  FileHints hints;
  hints.num_aggregators = std::min(num_processes, kMostAggregators);
  hints.buffer_bytes = kBufferBytes;
  hints.sieving = {kSieveGapBytes, kSieveBytes};
  tell_values(hints);
  return hints;
}

void use_file_hints(const Info::Pairs& pairs, int num_processes, FileHints& hints) {
  for (const auto& [key, value] : pairs) {
    set_pair(hints.pairs, key, value);
    use_hint(key, value, num_processes, hints);
  }
  tell_values(hints);
}

}  // namespace weft::mpi
