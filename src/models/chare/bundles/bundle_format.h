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

using LinearIndex = std::uint64_t;
using PeNumber = std::uint32_t;

// Which PE each call of a run names.
enum class NamedPe : std::uint16_t {
  kNone,         // in jobs without a grid
  kDestination,  // of the PE that gets the bundle, or of one to which that PE passes the call on
  kSource,       // the PE that has made the call, which is for the PE that gets the bundle
};

// Calls in a row of the same method and size. A linear index, a number of a PE if each call names one, and the arguments of each follow.
struct RunHeader {
  std::uint64_t collection = 0;
  std::uint32_t entry = 0;
  std::uint32_t move = 0;  // as EntryHeader::move_or_source
  std::uint32_t argument_bytes = 0;
  std::uint16_t num_calls = 0;
  NamedPe named = NamedPe::kNone;

  std::size_t call_bytes() const {
    return sizeof(LinearIndex) + (named == NamedPe::kNone ? 0 : sizeof(PeNumber)) + argument_bytes;
  }
};
static_assert(std::has_unique_object_representations_v<RunHeader>, "padding would travel");

static_assert(sizeof(BundleHeader) + sizeof(RunHeader) + sizeof(LinearIndex) + sizeof(PeNumber) +
                  Bundles::kMostArgumentBytes <=
              kBundleBytes);

}  // namespace weft::chare
