#include "await/setter.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstring>
#include <type_traits>
#include <utility>

#include "weft/chare/chares.h"
#include "weft/runtime/runtime.h"

#include "await/running_chare.h"
#include "base/format.h"
#include "runtime/future_table.h"
#include "support/support.h"

namespace weft::python {

namespace {

constexpr std::size_t kLongestName = 200;

// In front of the function's name and the file's: each has a byte of length.
struct Place {
  RunningChare chare;
  std::uint32_t line = 0;
};
static_assert(std::is_trivially_copyable_v<Place>);

std::string_view name_in(PyObject* text) {
  Py_ssize_t size = 0;
  const char* const data = text == nullptr ? nullptr : PyUnicode_AsUTF8AndSize(text, &size);
  if (data == nullptr) {
    PyErr_Clear();
    return "?";
  }
  return {data, static_cast<std::size_t>(size)};
}

void append(std::string& packed, std::string_view name) {
  name = name.substr(0, kLongestName);
  packed.push_back(static_cast<char>(name.size()));
  packed.append(name);
}

// Removes a name from the front. Empty if there is none.
std::string_view take_name(std::string_view& packed) {
  if (packed.empty()) return {};
  const std::size_t size =
      std::min<std::size_t>(static_cast<unsigned char>(packed.front()), packed.size() - 1);
  const std::string_view name = packed.substr(1, size);
  packed.remove_prefix(1 + size);
  return name;
}

PyObject* function_name(const PyCodeObject* code) {
#if PY_VERSION_HEX >= 0x030b0000
  return code->co_qualname;
#else
  return code->co_name;
#endif
}

// Whether it is the frame of weft.run: the scheduler calls a callback that is no Python function, such as future.set.
bool is_of_weft_run(std::string_view file) { return file.ends_with("weft/_job/run.py"); }

// A line that sets futures.
struct Site {
  Ref code;  // null for none
  int instruction = -1;
  std::uint32_t line = 0;
  std::string names = std::string(2, '\0');  // of the function and the file, packed; here both are empty
};
const Site no_site;

void describe(PyFrameObject* frame, Site& site) {
  const auto* const code = reinterpret_cast<const PyCodeObject*>(site.code.get());
  const std::string_view file = name_in(code->co_filename);
  site.line = 0;
  site.names.assign(2, '\0');
  if (is_of_weft_run(file)) return;
  site.line = static_cast<std::uint32_t>(std::max(PyFrame_GetLineNumber(frame), 0));
  site.names.clear();
  append(site.names, name_in(function_name(code)));
  append(site.names, file.substr(file.rfind('/') + 1));  // npos + 1 is 0
}

int instruction_of([[maybe_unused]] PyFrameObject* frame) {
#if PY_VERSION_HEX >= 0x030b0000
  return PyFrame_GetLasti(frame);
#else
  return -1;  // not told: described each time
#endif
}

// The last ones are remembered, because to find a line takes longer than to set a future.
const Site& site_of(PyFrameObject* frame) {
  constexpr std::size_t num_remembered = 64;
  static auto* const sites =
      new std::array<Site, num_remembered>;  // as long as the process: Python ends first
  Ref code = Ref::steal(reinterpret_cast<PyObject*>(PyFrame_GetCode(frame)));
  const int instruction = instruction_of(frame);
  const std::size_t hash =
      (reinterpret_cast<std::uintptr_t>(code.get()) >> 4) + static_cast<std::size_t>(instruction);
  Site& site = (*sites)[hash % num_remembered];
  if (site.code.get() == code.get() && site.instruction == instruction && instruction >= 0) return site;
  site.code = std::move(code);
  site.instruction = instruction;
  describe(frame, site);
  return site;
}

}  // namespace

std::string packed_setter() {
  Place place{running_chare, 0};
  PyFrameObject* const frame = PyEval_GetFrame();
  const Site& site = frame == nullptr ? no_site : site_of(frame);
  place.line = site.line;
  std::string packed(sizeof place + site.names.size(), '\0');
  std::memcpy(packed.data(), &place, sizeof place);
  std::memcpy(packed.data() + sizeof place, site.names.data(), site.names.size());
  return packed;
}

std::string describe_setter(runtime::Messenger& messenger, std::uint32_t pe, std::string_view packed) {
  Place place;
  if (packed.size() < sizeof place) return base::format("PE {}", pe);
  std::memcpy(&place, packed.data(), sizeof place);
  packed.remove_prefix(sizeof place);
  const std::string function = readable(make_text(take_name(packed)).get());
  const std::string file = readable(make_text(take_name(packed)).get());
  std::string who = base::format("PE {}", pe);
  if (place.chare.collection != 0) {
    const chare::Collection& collection =
        messenger.runtime().model<chare::Chares>().collection(place.chare.collection);
    if (collection.shape().size() != 0)  // else its creation has not arrived
      who = base::format("{} on PE {}", collection.element_name(place.chare.index), pe);
  }
  return file.empty() ? who : base::format("{} ({}, {}:{})", who, function, file, place.line);
}

void init_setter() { runtime::FutureTable::describe_setters_by(&describe_setter); }

}  // namespace weft::python
