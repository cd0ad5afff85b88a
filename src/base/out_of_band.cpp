#include "weft/base/out_of_band.h"

#include <cstring>
#include <utility>

namespace weft::base {

void OutOfBand::give(const ElementType& type, std::size_t count, std::unique_ptr<AnyVector> values) {
  auto* const given = new GivenVector{pool_, type, std::move(values)};
  attach(given->values->data(), count * type.size_bytes(), given, &GivenVector::release);
}

std::unique_ptr<AnyVector> OutOfBand::copy(const ElementType& type, std::size_t count,
                                           std::span<const std::byte> bytes) {
  std::unique_ptr<AnyVector> values = pool_.take(type, count);
  std::memcpy(values->data(), bytes.data(), bytes.size());
  return values;
}

}  // namespace weft::base
