#include "chare/calls/entry_method.h"

#include <structmember.h>

#include <cstddef>
#include <new>
#include <utility>
#include <vector>

#include "weft/chare/sections.h"

#include "await/future.h"
#include "base/format.h"
#include "chare/calls/calls.h"
#include "chare/calls/combined_calls.h"
#include "chare/calls/method_calls.h"
#include "codec/decoder.h"
#include "codec/encoder.h"
#include "support/errors.h"

namespace weft::python {

namespace {

PyTypeObject* type = nullptr;

PyObject* bind(PyObject* self, PyObject* const* arguments, Py_ssize_t count) {
  return guarded([&]() -> PyObject* {
    EntryMethodObject& entry = *as_method_object(self);
    entry.core.engine->expect_open_on_any_thread();
    if (has_post_entry(entry)) {
      throw base::Error(
          base::StatusCode::kInvalidArgument,
          base::format("{} has a post entry method, which chooses where the arguments of each call "
                       "land; they cannot be bound",
                       name_of(entry)));
    }
    if (entry.num_bound + count > kMostArguments) refuse_count(entry);
    Encoder encoder;
    write_bound(entry, encoder);
    encode_arguments(entry, encoder, {arguments, static_cast<std::size_t>(count)});
    const std::vector<std::byte> bytes = encoder.copy();
    Ref bound = checked(PyBytes_FromStringAndSize(reinterpret_cast<const char*>(bytes.data()),
                                                  static_cast<Py_ssize_t>(bytes.size())));
    const std::optional<std::uint64_t> index = entry.to_all ? std::nullopt : std::optional(entry.index);
    Ref result = make_entry_method(entry.core, index, entry.method, entry.priority, entry.section);
    as_method_object(result.get())->combined = entry.combined;
    as_method_object(result.get())->num_bound = static_cast<std::uint8_t>(entry.num_bound + count);
    as_method_object(result.get())->bound = std::move(bound);
    return result.release();
  });
}

PyObject* text(PyObject* self) {
  return guarded([self]() -> PyObject* {
    as_method_object(self)->core.engine->expect_open_on_any_thread();
    return make_text(base::format("<weft.EntryMethod {}>", name_of(*as_method_object(self)))).release();
  });
}

// "Ring[3].work", for the texts of its futures.
PyObject* name(PyObject* self) {
  return guarded([self]() -> PyObject* {
    as_method_object(self)->core.engine->expect_open_on_any_thread();
    return make_text(name_of(*as_method_object(self))).release();
  });
}

// For reports: the element that is called, or its whole collection.
bool party_of(PyObject* subject, runtime::NamedParty& party) {
  if (Py_TYPE(subject) != type) return false;
  const EntryMethodObject& entry = *as_method_object(subject);
  const chare::Collection& collection = *entry.core.collection;
  party.party = {collection.id(), entry.to_all ? runtime::Party::kAll : entry.index};
  party.name = entry.to_all ? collection.name() : collection.element_name(entry.index);
  return true;
}

void deallocate(PyObject* self) {
  as_method_object(self)->core.~ProxyCore();
  as_method_object(self)->bound.~Ref();
  as_method_object(self)->section.~shared_ptr();
  as_method_object(self)->combined.~shared_ptr();
  free_object(self);
}

// Travels in a pickle: the proxy as the bytes of its own form, the method's name, the bound arguments.
PyObject* reduce(PyObject* self, PyObject*) {
  return guarded([self]() -> PyObject* {
    const EntryMethodObject& entry = *as_method_object(self);
    Encoder encoder;
    if (entry.combined != nullptr) {
      encode_combined(encoder, *entry.combined->proxy);
    } else if (entry.section != nullptr) {
      encode_section(encoder, entry.core, *entry.section);
    } else {
      encode_core(encoder, entry.to_all ? ValueTag::kCollection : ValueTag::kElement, entry.core);
    }
    if (!entry.to_all) {
      encoder.number(entry.index);
      encoder.number(entry.priority);
    }
    const std::vector<std::byte> proxy = encoder.copy();
    const Ref rebuild = import_from("weft._core", "_entry_method_at");
    return Py_BuildValue("O(y#OiO)", rebuild.get(), reinterpret_cast<const char*>(proxy.data()),
                         static_cast<Py_ssize_t>(proxy.size()), entry.core.info->method_name(entry.method),
                         static_cast<int>(entry.num_bound), entry.bound ? entry.bound.get() : Py_None);
  });
}

PyObject* entry_method_at(PyObject*, PyObject* const* values, Py_ssize_t count) {
  return guarded([&]() -> PyObject* {
    Arguments arguments("_entry_method_at", {"proxy", "name", "num_bound", "bound"}, 4, values, count,
                        nullptr);
    const long num_bound = PyLong_AsLong(arguments[2]);
    if (PyErr_Occurred() != nullptr) throw PythonError();
    const bool is_bound = PyBytes_CheckExact(arguments[3]) != 0;
    if (PyBytes_CheckExact(arguments[0]) == 0 || num_bound < 0 || num_bound > kMostArguments ||
        (!is_bound && num_bound != 0)) {
      Decoder::corrupt("an entry method");
    }
    Decoder decoder(std::span(reinterpret_cast<const std::byte*>(PyBytes_AS_STRING(arguments[0])),
                              static_cast<std::size_t>(PyBytes_GET_SIZE(arguments[0]))));
    const Ref proxy = decoder.value();
    Ref method = checked(PyObject_GetAttr(proxy.get(), arguments[1]));
    if (Py_TYPE(method.get()) != type) Decoder::corrupt("an entry method of another name");
    // Each entry method is an object of its own, so this one may be changed.
    as_method_object(method.get())->num_bound = static_cast<std::uint8_t>(num_bound);
    if (is_bound) as_method_object(method.get())->bound = Ref::borrow(arguments[3]);
    return method.release();
  });
}

PyObject* compare(PyObject* a, PyObject* b, int operation) {
  if ((operation != Py_EQ && operation != Py_NE) || Py_TYPE(b) != type) Py_RETURN_NOTIMPLEMENTED;
  return guarded([&]() -> PyObject* {
    const EntryMethodObject& left = *as_method_object(a);
    const EntryMethodObject& right = *as_method_object(b);
    bool equal = left.core.collection == right.core.collection && left.index == right.index &&
                 left.method == right.method && left.to_all == right.to_all &&
                 left.num_bound == right.num_bound &&
                 (left.section == nullptr) == (right.section == nullptr) &&
                 (left.combined == nullptr) == (right.combined == nullptr);
    if (equal && left.combined != nullptr) equal = *left.combined == *right.combined;
    if (equal && left.section != nullptr) {
      equal = left.section->id() == right.section->id();
    }
    if (equal && left.num_bound != 0) {
      const int same = PyObject_RichCompareBool(left.bound.get(), right.bound.get(), Py_EQ);
      checked(same);
      equal = same == 1;
    }
    return PyBool_FromLong(equal == (operation == Py_EQ) ? 1 : 0);
  });
}

Py_hash_t hash(PyObject* self) {
  const EntryMethodObject& entry = *as_method_object(self);
  return hash_of(entry.core, (entry.index + 1) * 65'537 + entry.method);
}

PyObject* get_name(PyObject* self, void*) {
  const EntryMethodObject& entry = *as_method_object(self);
  return Py_NewRef(entry.core.info->method_name(entry.method));
}

PyObject* get_qualified_name(PyObject* self, void*) {
  const EntryMethodObject& entry = *as_method_object(self);
  return guarded([&] { return make_text(entry.core.info->full_method_name(entry.method)).release(); });
}

PyObject* described(PyObject* self, PyObject*) {
  const EntryMethodObject& entry = *as_method_object(self);
  return Py_BuildValue("OOi", entry.core.info->type(), entry.core.info->method_name(entry.method),
                       static_cast<int>(entry.num_bound));
}

// Makes help() and inspect take it for a method. It is bound to a chare already.
PyObject* get_itself(PyObject* self, PyObject*, PyObject*) { return Py_NewRef(self); }

PyGetSetDef properties[] = {
    {"__name__", &get_name, nullptr, nullptr, nullptr},
    {"__qualname__", &get_qualified_name, nullptr, nullptr, nullptr},
    {},
};
PyMethodDef methods[] = {
    {"send", as_method(&send_with_operation), METH_FASTCALL | METH_KEYWORDS,
     "send($self, /, *args, **kwargs)\n--\n\n"
     "Calls the entry method and reports when its arguments may be changed again. Does not block.\n\n"
     "Device memory and ``weft.nocopy(array)`` are sent in place and kept alive until the operation is\n"
     "over. Device memory is read after the work that is queued on the stream that it names. All other\n"
     "arguments are copied during the call and may be changed at once. If the operation is dropped, the\n"
     "send continues, and its failure ends the job.\n\n"
     "Args:\n"
     "    args, kwargs: the arguments of the entry method.\n\n"
     "Returns:\n"
     "    A weft.Operation. It is over when all arguments may be changed again.\n\n"
     "Raises:\n"
     "    TypeError: the method does not take these arguments.\n"
     "    weft.Error: an argument cannot be sent. Awaiting the operation raises it if the send of an\n"
     "        argument has failed; the method does not run then."},
    {"call", as_method(&call_with_result), METH_FASTCALL | METH_KEYWORDS,
     "call($self, /, *args, **kwargs)\n--\n\n"
     "Calls the entry method and returns a future of its result. Does not block.\n\n"
     "The result is there when the method has returned and all arguments may be changed again. Device\n"
     "memory that the method returns is sent in place: if the method keeps the array and changes it later,\n"
     "it must return a copy.\n\n"
     "Args:\n"
     "    args, kwargs: the arguments of the entry method.\n\n"
     "Returns:\n"
     "    A weft.Future. For a call to a whole collection its result is a list in index order, for one to a "
     "section in the "
     "order of the section.\n\n"
     "Raises:\n"
     "    TypeError: the method does not take these arguments.\n"
     "    weft.Error: an argument cannot be sent.\n"
     "    weft.RemoteError: when awaited, if the method raised an exception. It is of that exception's type\n"
     "        too, so ``except ValueError`` catches a ValueError. If the future is dropped and was never\n"
     "        awaited, the exception ends the job. In a call to several chares the first exception is "
     "raised\n"
     "        as soon as it arrives; the other chares may still run."},
    {"bind", as_method(&bind), METH_FASTCALL,
     "bind($self, /, *args)\n--\n\n"
     "The same entry method with its first arguments fixed.\n\n"
     "A reduction passes its result behind them: ``self.contribute(x, weft.Reducer.sum,\n"
     "proxy[0].store.bind(\"total\"))`` runs ``store(\"total\", result)``. A call passes its own arguments "
     "behind\n"
     "them. The arguments are copied now; they travel with each contribution, so they should be small.\n\n"
     "Args:\n"
     "    args: the first arguments.\n\n"
     "Returns:\n"
     "    A weft.EntryMethod.\n\n"
     "Raises:\n"
     "    weft.Error: an argument cannot be sent, or is in device memory or in weft.nocopy; or the method "
     "has a\n"
     "        post entry method."},
    {"__reduce__", &reduce, METH_NOARGS, nullptr},
    {"__class_getitem__", &Py_GenericAlias, METH_O | METH_CLASS, nullptr},
    {"_described", &described, METH_NOARGS, "For weft._chare.signatures."},
    {},
};
PyMemberDef members[] = {
    {"__vectorcalloffset__", T_PYSSIZET, offsetof(EntryMethodObject, vectorcall), READONLY, nullptr},
    {},
};
PyType_Slot slots[] = {
    {Py_tp_dealloc, reinterpret_cast<void*>(&deallocate)},
    {Py_tp_call, reinterpret_cast<void*>(&PyVectorcall_Call)},
    {Py_tp_descr_get, reinterpret_cast<void*>(&get_itself)},
    {Py_tp_getset, properties},
    {Py_tp_members, members},
    {Py_tp_methods, methods},
    {Py_tp_repr, reinterpret_cast<void*>(&text)},
    {Py_tp_str, reinterpret_cast<void*>(&name)},
    {Py_tp_richcompare, reinterpret_cast<void*>(&compare)},
    {Py_tp_hash, reinterpret_cast<void*>(&hash)},
    {Py_tp_doc,
     const_cast<char*>(
         "``proxy.method``: an entry method of one chare, of all chares of a collection, or of a section.\n\n"
         "    proxy.method(a)        calls it; an exception that the method raises ends the job\n"
         "    proxy.method.send(a)   the same, and returns a weft.Operation\n"
         "    proxy.method.call(a)   calls it and returns a weft.Future of the result\n\n"
         "No call blocks. Arguments are values: a change after the call never reaches the callee, on the\n"
         "same PE or on another.\n\n"
         "Device memory and ``weft.nocopy(array)`` are sent in place instead. The runtime keeps them alive.\n"
         "The caller must not change them before ``await proxy.method(a)`` has returned or the result of\n"
         "``call`` is there. Device memory arrives as a weft.DeviceArray. In a call to a whole collection\n"
         "each chare gets its own copy; values that nothing can change are shared by the chares of a PE.\n\n"
         "Any thread may call: the arguments are encoded by the calling thread, and the PE's thread sends "
         "them.\n"
         "While 64 MiB of them wait for it, a further call blocks, and raises weft.Error after 30 s. In an "
         "event\n"
         "loop, which must not block, it raises weft.Error at once: await earlier calls first.\n\n"
         "A call with large arguments may be overtaken by a later one with small arguments. An entry method\n"
         "can also be the target of a reduction, and travels as an argument, as a callback.\n\n"
         "``help(proxy.method)`` shows the parameters and the docstring of the method.\n\n"
         "Raises:\n"
         "    TypeError: the method does not take these arguments.\n"
         "    weft.Error: an argument cannot be sent, or too many wait for the PE's thread.")},
    {0, nullptr},
};
PyType_Spec spec = {"weft.EntryMethod", sizeof(EntryMethodObject), 0,
                    Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_VECTORCALL | Py_TPFLAGS_DISALLOW_INSTANTIATION,
                    slots};

PyMethodDef functions[] = {
    {"_entry_method_at", as_method(&entry_method_at), METH_FASTCALL, nullptr},
    {},
};

}  // namespace

Ref make_entry_method(const ProxyCore& core, std::optional<std::uint64_t> index, int method,
                      std::int32_t priority, chare::SectionMembers::Pointer section) {
  auto* object = reinterpret_cast<EntryMethodObject*>(PyType_GenericAlloc(type, 0));
  if (object == nullptr) throw PythonError();
  object->vectorcall = &call_without_result;
  new (&object->core) ProxyCore(core);
  new (&object->bound) Ref();
  new (&object->section) chare::SectionMembers::Pointer(std::move(section));
  new (&object->combined) std::shared_ptr<const CombinedMethod>();
  object->index = index.value_or(0);
  object->priority = priority;
  object->method = static_cast<std::uint16_t>(method);
  object->to_all = !index.has_value();
  return Ref::steal(reinterpret_cast<PyObject*>(object));
}

Ref make_combined_method(std::shared_ptr<const CombinedMethod> method) {
  Ref object = make_entry_method(method->proxy->cores.front(), std::nullopt, method->methods.front(), 0);
  as_method_object(object.get())->combined = std::move(method);
  return object;
}

std::optional<runtime::Target> target_of_method(PyObject* object, std::uint8_t result_form) {
  if (Py_TYPE(object) != type) return std::nullopt;
  EntryMethodObject& entry = *as_method_object(object);
  entry.core.engine->expect_open();
  if (entry.combined != nullptr) {
    Encoder bound;
    bound.number(entry.num_bound);
    write_bound(entry, bound);
    return target_of_combined(*entry.combined, result_form, bound.copy());
  }
  const chare::EntryHeader header{entry.core.collection->id(), entry.index, python_entry().id, 0, {}};
  runtime::Target target;
  if (entry.to_all && entry.section == nullptr) {
    target = entry.core.engine->chares().target_of_all(header);
  } else if (!entry.to_all) {
    target.handler = entry.core.engine->chares().entry_handler();
    target.pe = static_cast<std::uint32_t>(entry.core.collection->home(entry.index));
  }
  Encoder encoder;
  encoder.number(header);
  encoder.number(CallHeader{entry.method, CallHeader::Form::kResult, result_form});
  encoder.number(entry.num_bound);
  write_bound(entry, encoder);
  if (entry.section != nullptr) {
    return entry.core.engine->chares().sections().target(*entry.core.collection, *entry.section,
                                                         encoder.copy());
  }
  target.prefix.resize(encoder.size_bytes());
  encoder.copy_to(target.prefix.data());
  return target;
}

void init_entry_method(PyObject* module) {
  set_party_of_subject(&party_of);
  type = add_type(module, spec);
  checked(PyObject_CallOneArg(import_from("weft._chare.signatures", "describe").get(),
                              reinterpret_cast<PyObject*>(type)));
  add_functions(module, functions);
}

}  // namespace weft::python
