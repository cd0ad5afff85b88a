#include "chare/collections/section.h"

#include <new>
#include <utility>
#include <vector>

#include "weft/base/error.h"
#include "weft/chare/sections.h"

#include "base/format.h"
#include "chare/calls/entry_method.h"
#include "chare/classes/indices.h"
#include "chare/collections/collection_proxy.h"
#include "chare/collections/element_proxy.h"
#include "codec/decoder.h"
#include "codec/encoder.h"
#include "codec/forms.h"
#include "support/errors.h"

namespace weft::python {

namespace {

using base::Error;
using base::StatusCode;
using chare::Range;
using chare::SectionMembers;

struct SectionObject {
  PyObject_HEAD ProxyCore core;
  SectionMembers::Pointer members;
};

PyTypeObject* section_type = nullptr;

SectionObject* as_section(PyObject* object) { return reinterpret_cast<SectionObject*>(object); }

const chare::Shape& shape_of(const ProxyCore& core) { return core.collection->shape(); }

Ref index_at(const ProxyCore& core, std::uint64_t linear) {
  return core.info->index_object(shape_of(core).index(linear));
}

bool accepts(PyObject* function, PyObject* index) {
  const int truth = PyObject_IsTrue(checked(PyObject_CallOneArg(function, index)).get());
  checked(truth);
  return truth == 1;
}

// The linear indices that an iterable of indices names.
std::vector<std::uint64_t> listed(const ProxyCore& core, PyObject* indices) {
  const Ref iterator = Ref::steal(PyObject_GetIter(indices));
  if (!iterator) {
    if (PyType_GetSlot(Py_TYPE(indices), Py_tp_iter) != nullptr ||
        PyErr_ExceptionMatches(PyExc_TypeError) == 0)
      throw PythonError();
    PyErr_Clear();
    throw Error(
        StatusCode::kInvalidArgument,
        base::format(
            "a section is made from a function or from indices, such as a list of them, not from a {}",
            type_name_of(indices)));
  }
  std::vector<std::uint64_t> list;
  while (const Ref index = Ref::steal(PyIter_Next(iterator.get())))
    list.push_back(linear_index(shape_of(core), index.get(), core.info->name()));
  if (PyErr_Occurred() != nullptr) throw PythonError();
  return list;
}

Range range_of(PyObject* part, int extent) {
  if (PySlice_Check(part) == 0) return Range::one(coordinate(part));
  Py_ssize_t start = 0;
  Py_ssize_t stop = 0;
  Py_ssize_t step = 0;
  checked(PySlice_Unpack(part, &start, &stop, &step));
  const Py_ssize_t count = PySlice_AdjustIndices(extent, &start, &stop, step);
  if (count == 0) return {0, 0, 1};
  // From two coordinates on the step is smaller than the extent.
  return {static_cast<int>(start), static_cast<int>(count), count == 1 ? 1 : static_cast<int>(step)};
}

void deallocate(PyObject* self) {
  as_section(self)->members.~shared_ptr();
  as_section(self)->core.~ProxyCore();
  free_object(self);
}

PyObject* attribute_of(PyObject* self, PyObject* name) {
  const SectionObject& section = *as_section(self);
  const int method = section.core.info->method(name);
  if (method < 0) return no_method(self, section.core, name);
  return guarded(
      [&] { return make_entry_method(section.core, std::nullopt, method, 0, section.members).release(); });
}

PyObject* names_of(PyObject* self, PyObject*) { return list_names(self, {&as_section(self)->core, 1}); }

Py_ssize_t length(PyObject* self) { return static_cast<Py_ssize_t>(as_section(self)->members->size()); }

PyObject* subscript(PyObject* self, PyObject* which) {
  return guarded([&]() -> PyObject* {
    const SectionObject& section = *as_section(self);
    section.core.engine->expect_open_on_any_thread();
    const std::uint64_t size = section.members->size();
    if (PySlice_Check(which) == 0) {
      const int place = coordinate(which);
      if (place < 0 || static_cast<std::uint64_t>(place) >= size) {
        throw Error(
            StatusCode::kOutOfRange,
            base::format("place {} is outside of a section of {} chares; places count from 0", place, size));
      }
      return make_element_proxy(section.core, section.members->at(static_cast<std::uint64_t>(place)))
          .release();
    }
    Py_ssize_t start = 0;
    Py_ssize_t stop = 0;
    Py_ssize_t step = 0;
    checked(PySlice_Unpack(which, &start, &stop, &step));
    const Py_ssize_t count = PySlice_AdjustIndices(static_cast<Py_ssize_t>(size), &start, &stop, step);
    return make_section(section.core,
                        section.members->select(*section.core.collection, static_cast<std::uint64_t>(start),
                                                static_cast<std::uint64_t>(count), count <= 1 ? 1 : step))
        .release();
  });
}

Ref list_of_members(const SectionObject& section, Ref (*make)(const ProxyCore& core, std::uint64_t index)) {
  section.core.engine->expect_open_on_any_thread();
  Ref list = checked(PyList_New(length(reinterpret_cast<PyObject*>(const_cast<SectionObject*>(&section)))));
  for (std::uint64_t i = 0; i < section.members->size(); ++i) {
    PyList_SET_ITEM(list.get(), static_cast<Py_ssize_t>(i),
                    make(section.core, section.members->at(i)).release());
  }
  return list;
}

PyObject* iterate(PyObject* self) {
  return guarded([self]() -> PyObject* {
    const Ref elements = list_of_members(*as_section(self), [](const ProxyCore& core, std::uint64_t index) {
      return make_element_proxy(core, index);
    });
    return PyObject_GetIter(elements.get());
  });
}

PyObject* get_indices(PyObject* self, void*) {
  return guarded([self]() -> PyObject* { return list_of_members(*as_section(self), &index_at).release(); });
}

PyObject* get_collection(PyObject* self, void*) {
  return guarded([self]() -> PyObject* {
    const ProxyCore& core = as_section(self)->core;
    core.engine->expect_open_on_any_thread();
    return make_collection_proxy(*core.collection, *core.info).release();
  });
}

int contains(PyObject* self, PyObject* index) {
  try {
    const SectionObject& section = *as_section(self);
    section.core.engine->expect_open_on_any_thread();
    if (is_element_proxy(index)) {
      const ElementName element = element_of(index, "a member");
      return element.collection == section.core.collection &&
                     section.members->position(element.index).has_value()
                 ? 1
                 : 0;
    }
    const auto linear = linear_index_if_any(shape_of(section.core), index);
    return linear && section.members->position(*linear).has_value() ? 1 : 0;
  } catch (...) {
    set_python_error();
    return -1;
  }
}

PyObject* section_of_section(PyObject* self, PyObject* which) {
  return guarded([&]() -> PyObject* {
    const SectionObject& section = *as_section(self);
    section.core.engine->expect_open();
    std::vector<std::uint64_t> chosen;
    if (PyCallable_Check(which) != 0) {
      for (std::uint64_t i = 0; i < section.members->size(); ++i) {
        const std::uint64_t linear = section.members->at(i);
        if (accepts(which, index_at(section.core, linear).get())) chosen.push_back(linear);
      }
    } else {
      chosen = listed(section.core, which);
      for (const std::uint64_t linear : chosen) {
        if (section.members->position(linear).has_value()) continue;
        throw Error(StatusCode::kInvalidArgument,
                    base::format("{} is no member of the section of which a section is made",
                                 section.core.collection->element_name(linear)));
      }
    }
    return make_section(section.core, SectionMembers::of_list(*section.core.collection, std::move(chosen)))
        .release();
  });
}

PyObject* split(PyObject* self, PyObject* parts) {
  return guarded([&]() -> PyObject* {
    return split_section(as_section(self)->core, *as_section(self)->members, parts).release();
  });
}

PyObject* text(PyObject* self) {
  return PyUnicode_FromFormat("<weft.Section of %zd chares of %s>", length(self),
                              as_section(self)->core.info->name().c_str());
}

PyObject* compare(PyObject* a, PyObject* b, int operation) {
  if ((operation != Py_EQ && operation != Py_NE) || !is_section(b)) Py_RETURN_NOTIMPLEMENTED;
  // The collection may not exist any more: weft.run may have ended.
  const bool equal = as_section(a)->core.collection == as_section(b)->core.collection &&
                     as_section(a)->members->id() == as_section(b)->members->id();
  return PyBool_FromLong(equal == (operation == Py_EQ) ? 1 : 0);
}

Py_hash_t hash(PyObject* self) {
  const SectionObject& section = *as_section(self);
  return hash_of(section.core, section.members->id().low);
}

bool encode(Encoder& encoder, PyObject* section) {
  encode_section(encoder, section_core(section), *section_members(section));
  return true;
}

Ref decode(Decoder& decoder) {
  ProxyCore core = decode_core(decoder);
  SectionMembers::Pointer members;
  decoder.packed(&core.engine->runtime(),
                 [&](Pup& p) { members = core.engine->chares().sections().unpack(p, *core.collection); });
  return make_section(core, std::move(members));
}

PyGetSetDef properties[] = {
    {"collection", &get_collection, nullptr, "The proxy of the collection that the chares are in.", nullptr},
    {"indices", &get_indices, nullptr,
     "The indices of the chares, a list in the order of the section: ints, or tuples for several dimensions.",
     nullptr},
    {},
};
PyMethodDef methods[] = {
    {"section", &section_of_section, METH_O, R"(section($self, which, /)
--

A section of this section.

Args:
    which: a function that takes an index (int or tuple) and says whether the chare is in; the order is that of this section.
        Or the indices, such as a list of them, in the order of the new section.

Returns:
    weft.Section.

Raises:
    weft.Error: an index is no member's, or is there twice; or no job is running.)"},
    {"split", &split, METH_O, R"(split($self, parts, /)
--

Splits the section into sections of successive chares, whose sizes differ by one at most.

Args:
    parts: the number of sections, at least 1.

Returns:
    list of weft.Section.

Raises:
    weft.Error: parts is less than 1, or no job is running.)"},
    {"__dir__", &names_of, METH_NOARGS, nullptr},
    {"__class_getitem__", &Py_GenericAlias, METH_O | METH_CLASS, nullptr},
    {"__reduce__", &reduce_proxy, METH_NOARGS, nullptr},
    {},
};
PyType_Slot slots[] = {
    {Py_tp_dealloc, reinterpret_cast<void*>(&deallocate)},
    {Py_tp_getattro, reinterpret_cast<void*>(&attribute_of)},
    {Py_tp_setattro, reinterpret_cast<void*>(&refuse_assignment)},
    {Py_tp_repr, reinterpret_cast<void*>(&text)},
    {Py_tp_richcompare, reinterpret_cast<void*>(&compare)},
    {Py_tp_hash, reinterpret_cast<void*>(&hash)},
    {Py_tp_iter, reinterpret_cast<void*>(&iterate)},
    {Py_mp_subscript, reinterpret_cast<void*>(&subscript)},
    {Py_mp_length, reinterpret_cast<void*>(&length)},
    {Py_sq_contains, reinterpret_cast<void*>(&contains)},
    {Py_tp_getset, properties},
    {Py_tp_methods, methods},
    {Py_tp_doc,
     const_cast<char*>(R"(Some chares of a collection, in an order; a value that travels in messages.

``grid[0, :]``, ``array[::2]`` and ``array.section(...)`` make sections. ``section.method(args)`` calls an entry method of
every member. ``await section.method.call(args)`` gives the results in the order of the section. A member contributes to a
reduction over the section by ``self.contribute(value, reducer, target, section=section)``.

``section[i]`` is the proxy of the i-th member, ``section[a:b]`` a section of this section, ``x in section`` tells whether
the chare with the index x, or of the element proxy x, is a member (False for anything else), and ``len(section)`` is the number of members. Members are named by their indices, so
a section stays valid when they move. Sections with the same members in the same order are the same section.)")},
    {0, nullptr},
};
PyType_Spec spec = {"weft.Section", sizeof(SectionObject), 0,
                    Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION, slots};

}  // namespace

Ref make_section(const ProxyCore& core, SectionMembers::Pointer members) {
  Ref object = checked(PyType_GenericAlloc(section_type, 0));
  new (&as_section(object.get())->core) ProxyCore(core);
  new (&as_section(object.get())->members) SectionMembers::Pointer(std::move(members));
  return object;
}

bool is_section(PyObject* object) { return Py_TYPE(object) == section_type; }
const ProxyCore& section_core(PyObject* section) { return as_section(section)->core; }
const SectionMembers::Pointer& section_members(PyObject* section) { return as_section(section)->members; }

bool names_section(PyObject* subscript) {
  if (PyTuple_Check(subscript) == 0) return PySlice_Check(subscript) != 0;
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(subscript); ++i) {
    if (PySlice_Check(PyTuple_GET_ITEM(subscript, i)) != 0) return true;
  }
  return false;
}

SectionMembers::Pointer members_of_slices(const ProxyCore& core, PyObject* subscript) {
  const Ref parts =
      PyTuple_Check(subscript) != 0 ? Ref::borrow(subscript) : checked(PyTuple_Pack(1, subscript));
  std::vector<Range> ranges;
  for (Py_ssize_t d = 0; d < PyTuple_GET_SIZE(parts.get()); ++d) {
    // If there are more dimensions than the shape has, of_ranges() raises the error.
    const int extent = d < shape_of(core).num_dimensions() ? shape_of(core).extent(static_cast<int>(d)) : 0;
    ranges.push_back(range_of(PyTuple_GET_ITEM(parts.get(), d), extent));
  }
  return SectionMembers::of_ranges(*core.collection, ranges);
}

SectionMembers::Pointer members_of(const ProxyCore& core, PyObject* which) {
  if (PyCallable_Check(which) == 0) return SectionMembers::of_list(*core.collection, listed(core, which));
  return SectionMembers::of_function(*core.collection, [&core, which](const chare::Index& index) {
    return accepts(which, core.info->index_object(index).get());
  });
}

SectionMembers::Pointer all_members(const ProxyCore& core) {
  const std::vector<Range> all(static_cast<std::size_t>(shape_of(core).num_dimensions()), Range::all());
  return SectionMembers::of_ranges(*core.collection, all);
}

Ref split_section(const ProxyCore& core, const SectionMembers& whole, PyObject* parts) {
  core.engine->expect_open();
  std::vector<SectionMembers::Pointer> sections = whole.split(*core.collection, coordinate(parts));
  Ref list = checked(PyList_New(static_cast<Py_ssize_t>(sections.size())));
  for (std::size_t i = 0; i < sections.size(); ++i) {
    PyList_SET_ITEM(list.get(), static_cast<Py_ssize_t>(i),
                    make_section(core, std::move(sections[i])).release());
  }
  return list;
}

void init_section(PyObject* module) {
  section_type = add_type(module, spec);
  reserve_names_of(section_type);
  add_encoding(section_type, &encode);
  add_decoding(ValueTag::kSection, &decode);
}

}  // namespace weft::python
