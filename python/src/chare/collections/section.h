// weft.Section: some chares of a collection, as Python sees them.
#pragma once

#include "weft/chare/section_members.h"

#include "chare/calls/proxy_core.h"
#include "support/support.h"

namespace weft::python {

// REQUIRES: init_element_proxy() was called.
void init_section(PyObject* module);

Ref make_section(const ProxyCore& core, chare::SectionMembers::Pointer members);
bool is_section(PyObject* object);
// REQUIRES: is_section(section).
const ProxyCore& section_core(PyObject* section);
const chare::SectionMembers::Pointer& section_members(PyObject* section);

// Whether the subscript of a collection names a section: it is a slice, or a tuple with one.
bool names_section(PyObject* subscript);
// The three ways to make a section of a collection. They throw base::Error, and PythonError for what the program's functions
// and iterators raise.
chare::SectionMembers::Pointer members_of_slices(const ProxyCore& core, PyObject* subscript);
// A function from an index to a truth value, or an iterable of indices.
chare::SectionMembers::Pointer members_of(const ProxyCore& core, PyObject* which);
// `parts` sections of successive members, as a list.
Ref split_section(const ProxyCore& core, const chare::SectionMembers& whole, PyObject* parts);
// All elements. Throws base::Error for a sparse array.
chare::SectionMembers::Pointer all_members(const ProxyCore& core);

}  // namespace weft::python
