// Description: the contents of a channel message as they travel and wait in check mode; see Contents.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "weft/channel/contents.h"

namespace weft::channel {

struct Description {
  std::string type;
  std::vector<std::int64_t> extents;

  Description() = default;
  // `contents` may be null: plain bytes.
  Description(const Contents* contents, std::size_t size_bytes);

  bool agrees_with(const Description& other) const;
  // "float64[3, 4]", "100 bytes"
  std::string text() const;
};

}  // namespace weft::channel
