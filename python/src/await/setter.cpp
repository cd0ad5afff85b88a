#include "await/setter.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <utility>

#include "weft/chare/chares.h"
#include "weft/runtime/runtime.h"

#include "base/format.h"
#include "runtime/future_table.h"

namespace weft::python {

// A line that sets futures. Shared by the futures that it has set last.
struct SetterSite {
  std::uint32_t references = 0;
  std::uint32_t line = 0;
  Ref code = {};  // null if the site is of another PE
  int instruction = -1;
  std::string names = std::string(2, '\0');  // packed; here both are empty
};

namespace {

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
  name = name.substr(0, kLongestSetterName);
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

#if PY_VERSION_HEX >= 0x030b0000
constexpr const char* kFunctionName = "co_qualname";
#else
constexpr const char* kFunctionName = "co_name";
#endif

// Whether it is the frame of weft.run: the scheduler calls a callback that is no Python function, such as future.set.
bool is_of_weft_run(std::string_view file) { return file.ends_with("weft/_job/run.py"); }

void describe(PyFrameObject* frame, SetterSite& site) {
  const Ref path = Ref::steal(PyObject_GetAttrString(site.code.get(), "co_filename"));
  const Ref function = Ref::steal(PyObject_GetAttrString(site.code.get(), kFunctionName));
  const std::string_view file = name_in(path.get());
  if (is_of_weft_run(file)) return;
  site.line = static_cast<std::uint32_t>(std::max(PyFrame_GetLineNumber(frame), 0));
  site.names.clear();
  append(site.names, name_in(function.get()));
  append(site.names, file.substr(file.rfind('/') + 1));  // npos + 1 is 0
}

int instruction_of([[maybe_unused]] PyFrameObject* frame) {
#if defined(Py_LIMITED_API)
  return PyFrame_GetLasti == nullptr ? -1 : PyFrame_GetLasti(frame);
#elif PY_VERSION_HEX >= 0x030b0000
  return PyFrame_GetLasti(frame);
#else
  return -1;  // not told: described each time
#endif
}

// The site of the frame. The last ones are remembered, because to find a line takes longer than to set a future.
SetterSite* site_of(PyFrameObject* frame) {
  constexpr std::size_t num_remembered = 64;
  // Never deleted: the sites hold Python objects, and Python ends before static objects do.
  static auto* const sites = new std::array<SetterSite*, num_remembered>{};
  PyCodeObject* const code = PyFrame_GetCode(frame);
  Ref code_object = Ref::steal(reinterpret_cast<PyObject*>(code));
  const int instruction = instruction_of(frame);
  const std::size_t hash =
      (reinterpret_cast<std::uintptr_t>(code) >> 4) + static_cast<std::size_t>(instruction);
  SetterSite*& known = (*sites)[hash % num_remembered];
  if (known != nullptr && known->code.get() == code_object.get() && known->instruction == instruction &&
      instruction >= 0) [[likely]] {
    return known;
  }
  auto* const site =
      new SetterSite{.references = 2, .code = std::move(code_object), .instruction = instruction};
  describe(frame, *site);
  // The end of a code object may run code of the program, which may set a future and take the place of this site in the table.
  SetterSite* const former = std::exchange(known, site);
  if (former != nullptr && --former->references == 0) delete former;
  --site->references;
  return site;
}

}  // namespace

Setter::Setter(const RunningChare& chare, SetterSite* site, std::uint32_t pe)
    : chare_(chare), site_(site), pe_(pe) {
  ++site_->references;
}

Setter Setter::here(std::uint32_t pe) {
  static auto* const nowhere = new SetterSite{.references = 1};
  PyFrameObject* const frame = PyEval_GetFrame();
  return {running_chare, frame == nullptr ? nowhere : site_of(frame), pe};
}

void Setter::release() {
  if (--site_->references == 0) delete site_;
}

std::string_view Setter::pack(Packed& room) const {
  char* to = room.data();
  const auto append_bytes = [&to](const void* from, std::size_t size) {
    std::memcpy(to, from, size);
    to += size;
  };
  append_bytes(&chare_, sizeof chare_);
  append_bytes(&site_->line, sizeof site_->line);
  append_bytes(site_->names.data(), site_->names.size());
  return {room.data(), static_cast<std::size_t>(to - room.data())};
}

Setter Setter::unpack(std::uint32_t pe, std::string_view packed) {
  RunningChare chare;
  auto* const site = new SetterSite;
  constexpr std::size_t num_fixed = sizeof chare + sizeof site->line;
  if (packed.size() >= num_fixed && packed.size() <= sizeof(Packed)) {
    std::memcpy(&chare, packed.data(), sizeof chare);
    std::memcpy(&site->line, packed.data() + sizeof chare, sizeof site->line);
    site->names.assign(packed.substr(num_fixed));
  }
  return {chare, site, pe};
}

std::string Setter::text(runtime::Messenger& messenger) const {
  std::string_view names = site_->names;
  const std::string function = readable(make_text(take_name(names)).get());
  const std::string file = readable(make_text(take_name(names)).get());
  std::string who = base::format("PE {}", pe_);
  if (chare_.collection != 0) {
    const chare::Collection& collection =
        messenger.runtime().model<chare::Chares>().collection(chare_.collection);
    if (collection.shape().size() != 0)  // else its creation has not arrived
      who = base::format("{} on PE {}", collection.element_name(chare_.index), pe_);
  }
  return file.empty() ? who : base::format("{} ({}, {}:{})", who, function, file, site_->line);
}

void init_setter() {
  runtime::FutureTable::describe_setters_by(
      [](runtime::Messenger& messenger, std::uint32_t pe, std::string_view packed) {
        return Setter::unpack(pe, packed).text(messenger);
      });
}

}  // namespace weft::python
