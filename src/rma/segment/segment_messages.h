// The messages about segments between their owners and the other PEs. All that arrives is a claim.
//
//     a PE that uses a pointer        the owner
//     kAsk            ------------->
//                     <-------------  kDescription      also without a question, when the segment is published
//                     <-------------  kFreed
//     kReleased       ------------->                    this PE uses and maps the memory no more
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "weft/base/pup.h"

#include "base/shared_mapping.h"

namespace weft::rma {

enum class SegmentMessage : std::uint8_t { kDescription, kFreed, kReleased };

// Urgent, and so a message of a handler of its own.
struct SegmentQuestion {
  std::uint32_t segment = 0;
  // The PE cannot map the segment, and needs the machine's key to it.
  bool needs_key = false;
  void pup(base::Pup& p) { p | segment | needs_key; }
};

struct SegmentDescription {
  std::uint32_t segment = 0;
  std::uint8_t state = 0;  // a SegmentState; the rest is empty unless it is kLive
  bool is_answer = false;
  std::uint8_t kind = 0;
  std::int16_t device = 0;
  std::uint64_t size_bytes = 0;
  base::SharedMappingName states;   // of the owner's segments
  base::SharedMappingName mapping;  // all zeros: none
  std::uint64_t mapping_offset = 0;
  std::vector<std::byte> exported;
  std::uint64_t exported_offset = 0;
  bool has_key = false;
  std::uint64_t key_address = 0;
  std::vector<std::byte> key;
  std::string failure;  // of an answer: why the segment cannot be described
  void pup(base::Pup& p) {
    p | segment | state | is_answer | kind | device | size_bytes | states | mapping | mapping_offset |
        exported | exported_offset | has_key | key_address | key | failure;
  }
};

struct SegmentFreed {
  std::uint32_t segment = 0;
  std::uint32_t num_descriptions = 0;
  void pup(base::Pup& p) { p | segment | num_descriptions; }
};

struct SegmentReleased {
  std::uint32_t segment = 0;
  void pup(base::Pup& p) { p | segment; }
};

}  // namespace weft::rma
