// The ways in which the tests of buffers beside messages run: over which machine, by which of the two wire
// paths, in which kind of memory.
#pragma once

#include <gtest/gtest.h>

#include <array>
#include <ostream>
#include <string>

#include "weft/memory/buffer.h"
#include "weft/runtime/runtime.h"

namespace weft::testing {

struct Way {
  const char* machine;
  runtime::MessagingPath path;
  memory::Kind kind;
};

inline void PrintTo(const Way& way, std::ostream* out) {
  *out << way.machine << (way.path == runtime::MessagingPath::kActive ? "_active_" : "_tagged_")
       << memory::kind_name(way.kind);
}

inline std::string name_of(const ::testing::TestParamInfo<Way>& info) {
  return ::testing::PrintToString(info.param);
}

inline runtime::RuntimeOptions options_of(const Way& way) {
  runtime::RuntimeOptions made;
  made.messaging_path = way.path;
  return made;
}

inline constexpr std::array kEveryWay = {
    Way{"loopback", runtime::MessagingPath::kTagged, memory::Kind::kHost},
    Way{"loopback", runtime::MessagingPath::kActive, memory::Kind::kHost},
    Way{"loopback", runtime::MessagingPath::kTagged, memory::Kind::kEmulated},
    Way{"loopback", runtime::MessagingPath::kActive, memory::Kind::kEmulated},
    Way{"ucx", runtime::MessagingPath::kTagged, memory::Kind::kHost},
    Way{"ucx", runtime::MessagingPath::kActive, memory::Kind::kHost},
    Way{"ucx", runtime::MessagingPath::kTagged, memory::Kind::kEmulated},
    Way{"ucx", runtime::MessagingPath::kActive, memory::Kind::kEmulated}};

// A subset that contains each machine, path and kind at least once, for the tests of the models.
inline constexpr std::array kSomeWays = {
    Way{"loopback", runtime::MessagingPath::kTagged, memory::Kind::kHost},
    Way{"loopback", runtime::MessagingPath::kActive, memory::Kind::kEmulated},
    Way{"ucx", runtime::MessagingPath::kTagged, memory::Kind::kEmulated},
    Way{"ucx", runtime::MessagingPath::kActive, memory::Kind::kHost},
    Way{"ucx", runtime::MessagingPath::kActive, memory::Kind::kEmulated}};

// Device memory only: streams, copies that fail, and allocations that fail exist there alone.
inline constexpr std::array kDeviceWays = {
    Way{"loopback", runtime::MessagingPath::kTagged, memory::Kind::kEmulated},
    Way{"loopback", runtime::MessagingPath::kActive, memory::Kind::kEmulated},
    Way{"ucx", runtime::MessagingPath::kTagged, memory::Kind::kEmulated},
    Way{"ucx", runtime::MessagingPath::kActive, memory::Kind::kEmulated}};

}  // namespace weft::testing
