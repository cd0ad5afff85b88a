// The identity of a job: values that must be equal on all PEs, compared when the job starts.
//
// An identity travels as text, "weft-job\n" and then lines "name=value", which every version of Weft can
// read: a PE that runs another version gets a sentence that names what differs, not an error about bytes.
// Names and values may be added and changed at will; the form stays.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "weft/base/status.h"

namespace weft::job {

// The revision of the messages that PEs send one another. Raise it with every change of what travels.
inline constexpr int kWireRevision = 58;

inline constexpr std::size_t kMaxNoteBytes = 4096;

class Identity {
 public:
  // The values of this process's Weft and its machine: version, wire revision, word size, byte order.
  static Identity of_weft();

  void add(std::string_view name, std::string_view value);
  // `note`: what other PEs may know of this one, and which may differ. A version of Weft that does not know of notes takes it for a
  // difference.
  std::vector<std::byte> pack(std::string_view note = {}) const;
  // The note of a packed identity, which may hold anything; at most kMaxNoteBytes of it.
  static std::string_view note_of(std::span<const std::byte> theirs);
  // Fails if `theirs`, the packed identity of PE `their_pe`, differs from this one, of PE `my_pe`, and says how. `theirs` may
  // hold anything.
  base::Status expect_equal(int my_pe, std::span<const std::byte> theirs, int their_pe) const;

 private:
  std::vector<std::pair<std::string, std::string>> facts_;
};

}  // namespace weft::job
