#include "checkpoint/crc32c.h"

#include <array>
#include <cstring>

#if defined(__aarch64__) && defined(__ARM_FEATURE_CRC32)
#include <arm_acle.h>
#endif

namespace weft::checkpoint_files {

namespace {

constexpr std::uint32_t kPolynomial = 0x82f63b78;  // with the lowest bit first

constexpr std::array<std::uint32_t, 256> make_table() {
  std::array<std::uint32_t, 256> table{};
  for (std::uint32_t byte = 0; byte < table.size(); ++byte) {
    std::uint32_t crc = byte;
    for (int bit = 0; bit < 8; ++bit) crc = (crc >> 1) ^ ((crc & 1) != 0 ? kPolynomial : 0);
    table[byte] = crc;
  }
  return table;
}

constexpr std::array<std::uint32_t, 256> kTable = make_table();

#if defined(__x86_64__)
#define WEFT_HAS_CRC_INSTRUCTION 1
bool has_instruction() {
  static const bool has = __builtin_cpu_supports("sse4.2") != 0;
  return has;
}
#define WEFT_CRC_TARGET __attribute__((target("sse4.2")))
WEFT_CRC_TARGET std::uint64_t add_word(std::uint64_t crc, std::uint64_t word) {
  return __builtin_ia32_crc32di(crc, word);
}
WEFT_CRC_TARGET std::uint32_t add_byte(std::uint32_t crc, std::uint8_t byte) {
  return __builtin_ia32_crc32qi(crc, byte);
}
#elif defined(__aarch64__) && defined(__ARM_FEATURE_CRC32)
#define WEFT_HAS_CRC_INSTRUCTION 1
bool has_instruction() { return true; }
#define WEFT_CRC_TARGET
std::uint64_t add_word(std::uint64_t crc, std::uint64_t word) {
  return __crc32cd(static_cast<std::uint32_t>(crc), word);
}
std::uint32_t add_byte(std::uint32_t crc, std::uint8_t byte) { return __crc32cb(crc, byte); }
#endif

#if defined(WEFT_HAS_CRC_INSTRUCTION)
WEFT_CRC_TARGET std::uint32_t crc32c_by_instruction(const unsigned char* bytes, std::size_t size_bytes,
                                                    std::uint32_t before) {
  std::uint64_t crc = ~before;
  for (; size_bytes >= sizeof(std::uint64_t); size_bytes -= sizeof(std::uint64_t)) {
    std::uint64_t word = 0;
    std::memcpy(&word, bytes, sizeof word);
    crc = add_word(crc, word);
    bytes += sizeof word;
  }
  auto rest = static_cast<std::uint32_t>(crc);
  for (; size_bytes > 0; --size_bytes) rest = add_byte(rest, *bytes++);
  return ~rest;
}
#endif

}  // namespace

std::uint32_t crc32c_by_table(const void* data, std::size_t size_bytes, std::uint32_t before) {
  const auto* bytes = static_cast<const unsigned char*>(data);
  std::uint32_t crc = ~before;
  for (std::size_t i = 0; i < size_bytes; ++i) crc = kTable[(crc ^ bytes[i]) & 0xff] ^ (crc >> 8);
  return ~crc;
}

std::uint32_t crc32c(const void* data, std::size_t size_bytes, std::uint32_t before) {
#if defined(WEFT_HAS_CRC_INSTRUCTION)
  if (has_instruction())
    return crc32c_by_instruction(static_cast<const unsigned char*>(data), size_bytes, before);
#endif
  return crc32c_by_table(data, size_bytes, before);
}

}  // namespace weft::checkpoint_files
