#include "models/channel/description.h"

#include "base/format.h"

namespace weft::channel {

namespace {

std::vector<std::int64_t> without_ones(const std::vector<std::int64_t>& extents) {
  std::vector<std::int64_t> result = extents;
  std::erase(result, 1);
  return result;
}

}  // namespace

Description::Description(const Contents* contents, std::size_t size_bytes) {
  if (contents == nullptr || contents->type.empty()) {
    extents = {static_cast<std::int64_t>(size_bytes)};
    return;
  }
  type = contents->type;
  extents.assign(contents->extents.begin(), contents->extents.end());
  if (extents.empty()) extents = {static_cast<std::int64_t>(size_bytes / contents->element_bytes)};
}

bool Description::agrees_with(const Description& other) const {
  if (type.empty() || other.type.empty()) return true;
  if (type != other.type) return false;
  const std::vector<std::int64_t> mine = without_ones(extents);
  const std::vector<std::int64_t> others = without_ones(other.extents);
  return mine.size() < 2 || others.size() < 2 || mine == others;
}

std::string Description::text() const {
  if (type.empty()) return base::format("{} bytes", extents.empty() ? 0 : extents.front());
  std::string list;
  for (const std::int64_t extent : extents) list += (list.empty() ? "" : ", ") + std::to_string(extent);
  return base::format("{}[{}]", type, list);
}

}  // namespace weft::channel
