#include "weft/memory/buffer.h"

#include <array>

namespace weft::memory {

namespace {
#define WEFT_KIND_NAME(enumerator, name) #name,
constexpr std::array<std::string_view, kNumKinds> kNames = {WEFT_FOR_EACH_MEMORY_KIND(WEFT_KIND_NAME)};
#undef WEFT_KIND_NAME
}  // namespace

std::string_view kind_name(Kind kind) { return kNames.at(static_cast<std::size_t>(kind)); }

std::optional<Kind> kind_from_name(std::string_view name) {
  for (std::size_t i = 0; i < kNames.size(); ++i) {
    if (kNames[i] == name) return static_cast<Kind>(i);
  }
  return std::nullopt;
}

std::string place_name(Place place) {
  std::string name(kind_name(place.kind));
  if (!place.is_host()) name += ":" + std::to_string(place.device);
  return name;
}

}  // namespace weft::memory
