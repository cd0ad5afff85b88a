#include "chare/collections/combined_section.h"

#include <algorithm>
#include <new>
#include <string>
#include <utility>

#include "weft/base/error.h"
#include "weft/chare/sections.h"

#include "base/format.h"
#include "chare/calls/entry_method.h"
#include "chare/classes/indices.h"
#include "chare/collections/collection_proxy.h"
#include "chare/collections/element_proxy.h"
#include "chare/collections/section.h"
#include "codec/decoder.h"
#include "codec/forms.h"
#include "support/errors.h"

namespace weft::python {

namespace {

using base::Error;
using base::StatusCode;
using chare::CombinedMembers;

struct CombinedObject {
  PyObject_HEAD std::shared_ptr<const CombinedProxy> proxy;
};

PyTypeObject* combined_type = nullptr;

CombinedObject* as_combined(PyObject* object) { return reinterpret_cast<CombinedObject*>(object); }
const CombinedProxy& proxy_of(PyObject* object) { return *as_combined(object)->proxy; }

Ref make_combined(CombinedProxy proxy) {
  auto shared = std::make_shared<const CombinedProxy>(std::move(proxy));
  Ref object = checked(PyType_GenericAlloc(combined_type, 0));
  new (&as_combined(object.get())->proxy) std::shared_ptr<const CombinedProxy>(std::move(shared));
  return object;
}

void deallocate(PyObject* self) {
  as_combined(self)->proxy.~shared_ptr();
  free_object(self);
}

Engine& open_engine(const CombinedProxy& proxy) {
  Engine& engine = *proxy.cores.front().engine;
  engine.expect_open();
  return engine;
}

PyObject* names_of(PyObject* self, PyObject*) { return list_names(self, as_combined(self)->proxy->cores); }

PyObject* attribute_of(PyObject* self, PyObject* name) {
  CombinedMethod method{as_combined(self)->proxy, {}};
  for (const ProxyCore& core : method.proxy->cores) {
    const int number = core.info->method(name);
    if (number < 0) return no_method(self, core, name);
    method.methods.push_back(static_cast<std::uint16_t>(number));
  }
  return guarded([&] {
    return make_combined_method(std::make_shared<const CombinedMethod>(std::move(method))).release();
  });
}

Py_ssize_t length(PyObject* self) { return static_cast<Py_ssize_t>(proxy_of(self).members->size()); }

Ref element_at(const CombinedProxy& proxy, std::uint64_t place) {
  const CombinedMembers::Member member = proxy.members->at(place);
  return make_element_proxy(proxy.cores[member.part], member.linear_index);
}

PyObject* subscript(PyObject* self, PyObject* which) {
  return guarded([&]() -> PyObject* {
    const CombinedProxy& proxy = proxy_of(self);
    open_engine(proxy);
    if (PySlice_Check(which) != 0) {
      throw Error(StatusCode::kInvalidArgument,
                  "a combined section has no slices; combine slices of its parts: "
                  "weft.combine(a[:2], b[:2])");
    }
    const int place = coordinate(which);
    if (place < 0 || static_cast<std::uint64_t>(place) >= proxy.members->size()) {
      throw Error(StatusCode::kOutOfRange,
                  base::format("place {} is outside of a combined section of {} chares; places count from 0",
                               place, proxy.members->size()));
    }
    return element_at(proxy, static_cast<std::uint64_t>(place)).release();
  });
}

PyObject* iterate(PyObject* self) {
  return guarded([self]() -> PyObject* {
    const CombinedProxy& proxy = proxy_of(self);
    open_engine(proxy);
    const Ref elements = checked(PyList_New(length(self)));
    for (std::uint64_t i = 0; i < proxy.members->size(); ++i)
      PyList_SET_ITEM(elements.get(), static_cast<Py_ssize_t>(i), element_at(proxy, i).release());
    return PyObject_GetIter(elements.get());
  });
}

int contains(PyObject* self, PyObject* element) {
  try {
    open_engine(proxy_of(self));
    if (!is_element_proxy(element)) return 0;
    const ElementName name = element_of(element, "a member");
    return proxy_of(self).members->position(*name.collection, name.index).has_value() ? 1 : 0;
  } catch (...) {
    set_python_error();
    return -1;
  }
}

PyObject* get_parts(PyObject* self, void*) {
  return guarded([self]() -> PyObject* {
    const CombinedProxy& proxy = proxy_of(self);
    open_engine(proxy);
    Ref list = checked(PyList_New(static_cast<Py_ssize_t>(proxy.cores.size())));
    for (std::size_t i = 0; i < proxy.cores.size(); ++i) {
      PyList_SET_ITEM(list.get(), static_cast<Py_ssize_t>(i),
                      make_section(proxy.cores[i], proxy.members->parts()[i].members).release());
    }
    return list.release();
  });
}

PyObject* text(PyObject* self) {
  return guarded([self]() -> PyObject* {
    std::vector<std::string> names;
    for (const ProxyCore& core : proxy_of(self).cores) {
      if (std::ranges::find(names, core.info->name()) == names.end()) names.push_back(core.info->name());
    }
    std::string all;
    for (const std::string& name : names) all += (all.empty() ? "" : ", ") + name;
    return make_text(base::format("<weft.CombinedSection of {} chares of {}>", length(self), all)).release();
  });
}

PyObject* compare(PyObject* a, PyObject* b, int operation) {
  if ((operation != Py_EQ && operation != Py_NE) || !is_combined_section(b)) Py_RETURN_NOTIMPLEMENTED;
  const bool equal = *proxy_of(a).members == *proxy_of(b).members;
  return PyBool_FromLong(equal == (operation == Py_EQ) ? 1 : 0);
}

Py_hash_t hash(PyObject* self) {
  const CombinedProxy& proxy = proxy_of(self);
  std::uint64_t salt = proxy.cores.size();
  for (const CombinedMembers::Part& part : proxy.members->parts()) salt = salt * 31 + part.members->id().low;
  return hash_of(proxy.cores.front(), salt);
}

bool encode(Encoder& encoder, PyObject* section) {
  encode_combined(encoder, proxy_of(section));
  return true;
}

Ref decode(Decoder& decoder) {
  Engine& engine = Engine::current();
  CombinedProxy proxy;
  decoder.packed(&engine.runtime(),
                 [&](Pup& p) { proxy.members = engine.chares().sections().unpack_combined(p); });
  for (const CombinedMembers::Part& part : proxy.members->parts())
    proxy.cores.push_back({EngineRef(engine), part.collection, &ClassInfo::find(decoder.name())});
  return make_combined(std::move(proxy));
}

// --- weft.combine

struct Combination {
  CombinedMembers members;
  std::vector<ProxyCore> cores;  // of the arguments

  void add(PyObject* part) {
    if (is_combined_section(part)) {
      const CombinedProxy& proxy = proxy_of(part);
      open_engine(proxy);
      members.add(*proxy.members);
      cores.insert(cores.end(), proxy.cores.begin(), proxy.cores.end());
    } else if (is_section(part)) {
      add_core(section_core(part));
      members.add(*cores.back().collection, section_members(part));
    } else if (is_collection_proxy(part)) {
      add_core(collection_core(part));
      members.add_all(*cores.back().collection);
    } else if (is_element_proxy(part)) {
      const ElementName element = element_of(part, "a member");
      add_core(element_core(part));
      members.add(*element.collection, chare::SectionMembers::of_list(*element.collection, {element.index}));
    } else {
      throw Error(StatusCode::kInvalidArgument,
                  base::format("weft.combine takes sections, such as proxy[::2], and proxies of collections "
                               "and of chares, not a {}",
                               type_name_of(part)));
    }
  }
  void add_core(const ProxyCore& core) {
    core.engine->expect_open();
    cores.push_back(core);
  }
  bool is_of_one_collection() const {
    return std::ranges::all_of(
        cores, [this](const ProxyCore& core) { return core.collection == cores.front().collection; });
  }
  const ProxyCore& core_of(const chare::Collection* collection) const {
    return *std::ranges::find(cores, collection, &ProxyCore::collection);
  }
};

PyObject* combine(PyObject*, PyObject* const* parts, Py_ssize_t count) {
  return guarded([&]() -> PyObject* {
    if (count == 0) throw Error(StatusCode::kInvalidArgument, "weft.combine needs at least one section");
    Combination all;
    for (Py_ssize_t i = 0; i < count; ++i) all.add(parts[i]);
    const auto made = all.members.parts();
    if (all.is_of_one_collection()) return make_section(all.cores.front(), made.front().members).release();
    CombinedProxy proxy{std::make_shared<const CombinedMembers>(all.members), {}};
    for (const CombinedMembers::Part& part : made) proxy.cores.push_back(all.core_of(part.collection));
    return make_combined(std::move(proxy)).release();
  });
}

PyGetSetDef properties[] = {
    {"parts", &get_parts, nullptr,
     "Its sections, a list of weft.Section. Neighbouring ones are of two collections, and none is empty "
     "unless it is "
     "the only one.",
     nullptr},
    {},
};
PyMethodDef methods[] = {
    {"__dir__", &names_of, METH_NOARGS, nullptr},
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
     const_cast<char*>(R"(Chares of several collections, in an order; a value that travels in messages.

``weft.combine(walls, grid[0, :])`` makes one. ``combined.method(args)`` calls an entry method of every member; each class must
have it. ``await combined.method.call(args)`` gives the results in the order of the members. A member contributes to a
reduction over all of them by ``self.contribute(value, reducer, target, section=combined)``.

``combined[i]`` is the proxy of the i-th member, ``x in combined`` tells whether the chare of the element proxy x is a member
(False for anything else), and ``len(combined)`` is the number of members. Combined sections with the same members in the
same order are the same.)")},
    {0, nullptr},
};
PyType_Spec spec = {"weft.CombinedSection", sizeof(CombinedObject), 0,
                    Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION, slots};

PyMethodDef functions[] = {
    {"combine", as_method(&combine), METH_FASTCALL, R"(combine(*parts)
--

A section with the members of all: those of the first, then those of the second that are not among them, and so on.

Args:
    parts: one or more sections, combined sections, proxies of collections, and proxies of chares.

Returns:
    weft.Section if all are of one collection, else weft.CombinedSection.

Raises:
    weft.Error: an argument is none of these, or is a whole sparse array; or no job is running.)"},
    {},
};

}  // namespace

bool is_combined_section(PyObject* object) { return Py_TYPE(object) == combined_type; }

const std::shared_ptr<const CombinedProxy>& combined_section(PyObject* section) {
  return as_combined(section)->proxy;
}

void init_combined_section(PyObject* module) {
  combined_type = add_type(module, spec);
  reserve_names_of(combined_type);
  add_encoding(combined_type, &encode);
  add_decoding(ValueTag::kCombinedSection, &decode);
  add_functions(module, functions);
}

}  // namespace weft::python
