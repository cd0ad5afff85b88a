// The calls of weft.EntryMethod, and what its object holds. For entry_method.cpp, which has the Python type.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "weft/chare/section_members.h"

#include "chare/calls/proxy_core.h"
#include "codec/encoder.h"
#include "support/support.h"

namespace weft::python {

struct CombinedMethod;

inline constexpr Py_ssize_t kMostArguments = 255;

struct EntryMethodObject {
  PyObject_HEAD vectorcallfunc vectorcall;
  ProxyCore core;
  std::uint64_t index;
  std::int32_t priority;
  std::uint16_t method;
  bool to_all;                             // of a collection or of a section
  std::uint8_t num_bound;                  // arguments of bind(), which come first in every call
  Ref bound;                               // bytes: these arguments, encoded; null if there are none
  chare::SectionMembers::Pointer section;  // the members, if it is of a section
  // If it is of a combined section; `core` and `method` are then those of its first part.
  std::shared_ptr<const CombinedMethod> combined;
};

inline EntryMethodObject* as_method_object(PyObject* object) {
  return reinterpret_cast<EntryMethodObject*>(object);
}

// "Ring[3].work", or "Ring.work" of several.
std::string name_of(const EntryMethodObject& entry);
bool has_post_entry(const EntryMethodObject& entry);
[[noreturn]] void refuse_count(const EntryMethodObject& entry);
// Writes the bound arguments, which are encoded already. REQUIRES: the count was written.
void write_bound(const EntryMethodObject& entry, Encoder& encoder);
// Throws base::Error, which names the argument and the method, if one cannot travel.
void encode_arguments(const EntryMethodObject& entry, Encoder& encoder, std::span<PyObject* const> arguments);

// Encodes the header and the arguments of a call. Throws PythonError or base::Error if an argument cannot travel, or the method does not
// take these arguments.
void encode_call(const EntryMethodObject& entry, Encoder& encoder, PyObject* const* arguments,
                 Py_ssize_t num_positional, PyObject* keyword_names);
// Makes the call without a result whose header and arguments `encoder` holds, on the PE's thread. Returns what the program may await.
Ref send_encoded(const EntryMethodObject& entry, Encoder& encoder);
// The job has ended, perhaps while a call waited. Throws PythonError, a KeyboardInterrupt, if Ctrl-C has ended it: the caller may be a
// loop.
void raise_if_interrupted(const EntryMethodObject& entry);

// method(...), method.send(...) and method.call(...), on any thread.
PyObject* call_without_result(PyObject* self, PyObject* const* arguments, std::size_t count,
                              PyObject* keyword_names);
PyObject* send_with_operation(PyObject* self, PyObject* const* arguments, Py_ssize_t count,
                              PyObject* keyword_names);
PyObject* call_with_result(PyObject* self, PyObject* const* arguments, Py_ssize_t count,
                           PyObject* keyword_names);

}  // namespace weft::python
