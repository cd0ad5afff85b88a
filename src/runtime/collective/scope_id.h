// ScopeId, the name of a set of contributors (reductions.h): the PE that is the root of its tree, and a number there.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>

namespace weft::runtime {

struct ScopeId {
  std::uint32_t root_pe = 0;
  std::uint64_t id = 0;

  friend bool operator==(const ScopeId&, const ScopeId&) = default;
};

struct ScopeIdHash {
  std::size_t operator()(const ScopeId& scope) const {
    return std::hash<std::uint64_t>()(scope.id * 0x9e3779b97f4a7c15 + scope.root_pe);
  }
};

}  // namespace weft::runtime
