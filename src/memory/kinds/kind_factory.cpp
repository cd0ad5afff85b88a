#include "memory/kinds/kind_factory.h"

#include <array>

namespace weft::memory {

namespace {

#define WEFT_FACTORY_ADDRESS(enumerator, name) &kinds::name,
constexpr std::array<const KindFactory*, kNumKinds> kFactories = {
    WEFT_FOR_EACH_MEMORY_KIND(WEFT_FACTORY_ADDRESS)};
#undef WEFT_FACTORY_ADDRESS

}  // namespace

const KindFactory& factory_of(Kind kind) { return *kFactories[static_cast<std::size_t>(kind)]; }

NativeApi native_api_of(Kind kind) { return factory_of(kind).native_api; }

}  // namespace weft::memory
