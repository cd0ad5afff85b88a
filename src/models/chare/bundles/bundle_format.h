// The wire format of a bundle of aggregated calls. README.md describes it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "weft/chare/bundles/aggregated.h"

namespace weft::chare {

// The most bytes of a bundle, measured by benchmarks/call_rate.cpp: see src/models/chare/bundles/README.md.
inline constexpr std::size_t kBundleBytes = 8000;

struct BundleHeader {
  std::uint64_t number = 0;  // from 0, of the bundles from this PE to that one
};

// Calls in a row of the same method and size. A linear index (8 bytes) and the arguments of each follow.
struct RunHeader {
  std::uint64_t collection = 0;
  std::uint32_t entry = 0;
  std::uint32_t move = 0;  // as EntryHeader::move_or_source
  std::uint32_t argument_bytes = 0;
  std::uint32_t num_calls = 0;
};
static_assert(std::has_unique_object_representations_v<RunHeader>, "padding would travel");

static_assert(sizeof(BundleHeader) + sizeof(RunHeader) + sizeof(std::uint64_t) +
                  Bundles::kMostArgumentBytes <=
              kBundleBytes);

}  // namespace weft::chare
