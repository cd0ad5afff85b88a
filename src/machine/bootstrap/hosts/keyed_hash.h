// SipHash-2-4: a hash that only those who have the key can make or check. For short messages.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace weft::machine {

inline constexpr std::size_t kHashKeyBytes = 16;

std::uint64_t keyed_hash(std::span<const std::byte, kHashKeyBytes> key, std::span<const std::byte> message);

}  // namespace weft::machine
