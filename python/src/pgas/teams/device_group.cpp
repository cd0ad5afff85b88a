#include "pgas/teams/device_group.h"

#include <cstdint>
#include <memory>
#include <new>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "weft/base/error.h"
#include "weft/chare/device_work.h"
#include "weft/queued/device_group.h"

#include "await/future.h"
#include "base/format.h"
#include "buffers/arrays/dtype.h"
#include "buffers/arrays/element_types.h"
#include "buffers/object_buffer.h"
#include "buffers/streams/stream.h"
#include "chare/classes/chare.h"
#include "chare/classes/classes.h"
#include "memory/memory.h"
#include "pgas/teams/array_combine.h"
#include "support/errors.h"

namespace weft::python {

namespace {

struct DeviceGroupParts {
  EngineRef engine;
  std::shared_ptr<queued::DeviceGroup> group;
};
struct DeviceGroupObject {
  PyObject_HEAD DeviceGroupParts parts;
};

PyTypeObject* device_group_type = nullptr;

DeviceGroupParts& group_parts(PyObject* self) { return reinterpret_cast<DeviceGroupObject*>(self)->parts; }
const queued::DeviceGroup& open_group(PyObject* self) {
  const DeviceGroupParts& parts = group_parts(self);
  parts.engine->expect_open();
  return *parts.group;
}

void deallocate_device_group(PyObject* self) {
  DeviceGroupParts& parts = group_parts(self);
  Engine::drop_on_pe_thread(std::move(parts.group));
  parts.~DeviceGroupParts();
  free_object(self);
}

[[noreturn]] void refuse_arrays(const std::string& message) {
  throw base::Error(base::StatusCode::kInvalidArgument, message);
}

std::optional<memory::ElementType> device_type_of(const Ref& dtype) {
  if (!dtype) return std::nullopt;
  if (const ElementType* const other = element_type_of(dtype.get()); other != nullptr) {
    if (std::string_view(other->name) != "bfloat16") return std::nullopt;
    return memory::ElementType::kBfloat16;
  }
  if (!is_native_byte_order(dtype)) return std::nullopt;
  const std::size_t size_bytes = item_size_bytes(dtype);
  if (dtype_letter(dtype) == 'i' && size_bytes == 4) return memory::ElementType::kInt32;
  if (dtype_letter(dtype) == 'i' && size_bytes == 8) return memory::ElementType::kInt64;
  if (dtype_letter(dtype) != 'f') return std::nullopt;
  if (size_bytes == 2) return memory::ElementType::kFloat16;
  if (size_bytes == 4) return memory::ElementType::kFloat32;
  if (size_bytes == 8) return memory::ElementType::kFloat64;
  return std::nullopt;
}

// An array of an operation.
struct GroupArray {
  GroupArray(PyObject* object, Access access, const char* use)
      : buffer(buffer_of({object, access, use, &form})) {
    const std::optional<memory::ElementType> found = device_type_of(form.dtype);
    if (!found.has_value()) {
      throw base::Error(
          base::StatusCode::kUnsupported,
          base::format("{} got an array of {}; devices combine int32, int64, float16, bfloat16, "
                       "float32 and float64 in native byte order",
                       use, form.dtype ? dtype_name(form.dtype) : "plain bytes"));
    }
    type = *found;
  }
  std::byte* data() const { return static_cast<std::byte*>(buffer.memory.data); }
  std::size_t num_elements() const { return form.size_bytes / size_of(type); }

  ArrayForm form;
  ObjectBuffer buffer;
  memory::ElementType type{};
};

bool is_given_object(PyObject* object) { return object != nullptr && object != Py_None; }

// What one operation of a group uses: its arrays and its stream.
class GroupCall {
 public:
  GroupCall(PyObject* self, PyObject* array, PyObject* out, const char* use)
      : group(open_group(self)),
        use_(use),
        in_(array, is_given_object(out) ? Access::kRead : Access::kWrite, use) {
    if (!is_given_object(out)) return;
    out_.emplace(out, Access::kWrite, use);
    if (out_->type == in_.type) return;
    refuse_arrays(base::format("{} got arrays of {} and {}; give both the same type", use,
                               form_text(in_.form), form_text(out_->form)));
  }

  const GroupArray& in() const { return in_; }
  bool is_in_place() const { return !out_.has_value(); }
  const GroupArray& out() const { return is_in_place() ? in_ : *out_; }
  std::size_t num_members() const { return static_cast<std::size_t>(group.size()); }
  std::size_t own_rank() const { return static_cast<std::size_t>(group.rank()); }

  // Throws base::Error unless `out` has so many elements.
  void expect_out(std::size_t num_elements) const {
    if (out().num_elements() == num_elements) return;
    refuse_arrays(base::format("{} of a group of {} got arrays of {} and {}; the second needs {} elements",
                               use_, group.size(), form_text(in_.form), form_text(out().form), num_elements));
  }
  // The elements of one of the parts that an array has for the members.
  std::size_t part_of(const GroupArray& array) const {
    if (array.num_elements() % num_members() == 0) return array.num_elements() / num_members();
    refuse_arrays(base::format("{} got an array of {}, which has no equal parts for {} members", use_,
                               form_text(array.form), group.size()));
  }
  // Calls `queue(stream)`. The arrays and the stream stay until the operation is over.
  template <class Queue>
  PyObject* run(PyObject* stream, const Queue& queue) {
    NamedStream named = stream_of(stream);
    queue(named.handle);
    struct Kept {
      Ref in, out, stream;
    };
    auto kept = std::make_shared<Kept>();
    kept->in = std::move(in_.buffer.keeper);
    if (out_.has_value()) kept->out = std::move(out_->buffer.keeper);
    kept->stream = std::move(named.keeper);
    group.keep(std::move(kept), named.handle);
    Py_RETURN_NONE;
  }

  const queued::DeviceGroup& group;

 private:
  // The one that is given; else that of the arrays; else that of programs that name none.
  NamedStream stream_of(PyObject* given) const {
    if (is_given_object(given)) return stream_from(given, group.device(), use_);
    const memory::StreamHandle first = in_.buffer.memory.stream;
    const memory::StreamHandle second = out().buffer.memory.stream;
    if (first != nullptr && second != nullptr && first != second)
      refuse_arrays(base::format("{} got arrays that name two streams; pass stream=...", use_));
    if (first != nullptr || second != nullptr) return {first != nullptr ? first : second, Ref()};
    const Ref device = make_text(memory::place_name(group.device()));
    return std::move(placed_stream_or_default(nullptr, device.get(), use_).stream);
  }

  const char* use_;
  GroupArray in_;
  std::optional<GroupArray> out_;
};

runtime::Reducer reducer_from(PyObject* op, const char* use) {
  return is_given_object(op) ? in_place_reducer(op, use) : runtime::Reducer::kSum;
}

int root_from_number(PyObject* number) {
  if (!is_given_object(number)) return 0;
  const std::int64_t root = integer_from(number);
  return root < 0 || root > INT32_MAX ? -1
                                      : static_cast<int>(root);  // -1 is refused as all that are no ranks
}

PyObject* group_broadcast(PyObject* self, PyObject* const* values, Py_ssize_t count, PyObject* names) {
  return guarded([&]() -> PyObject* {
    static constexpr const char* kUse = "DeviceGroup.broadcast";
    const Arguments arguments(kUse, {"array", "root", "stream"}, 1, values, count, names);
    GroupCall call(self, arguments[0], nullptr, kUse);
    return call.run(arguments[2], [&](memory::StreamHandle stream) {
      call.group.broadcast(call.in().data(), call.in().num_elements(), call.in().type,
                           root_from_number(arguments[1]), stream);
    });
  });
}

PyObject* group_reduce(PyObject* self, PyObject* const* values, Py_ssize_t count, PyObject* names) {
  return guarded([&]() -> PyObject* {
    static constexpr const char* kUse = "DeviceGroup.reduce";
    const Arguments arguments(kUse, {"array", "out", "op", "root", "stream"}, 1, values, count, names);
    GroupCall call(self, arguments[0], arguments[1], kUse);
    const int root = root_from_number(arguments[3]);
    if (root == call.group.rank()) call.expect_out(call.in().num_elements());
    return call.run(arguments[4], [&](memory::StreamHandle stream) {
      call.group.reduce(call.in().data(), call.out().data(), call.in().num_elements(), call.in().type,
                        reducer_from(arguments[2], kUse), root, stream);
    });
  });
}

PyObject* group_all_reduce(PyObject* self, PyObject* const* values, Py_ssize_t count, PyObject* names) {
  return guarded([&]() -> PyObject* {
    static constexpr const char* kUse = "DeviceGroup.all_reduce";
    const Arguments arguments(kUse, {"array", "out", "op", "stream"}, 1, values, count, names);
    GroupCall call(self, arguments[0], arguments[1], kUse);
    call.expect_out(call.in().num_elements());
    return call.run(arguments[3], [&](memory::StreamHandle stream) {
      call.group.all_reduce(call.in().data(), call.out().data(), call.in().num_elements(), call.in().type,
                            reducer_from(arguments[2], kUse), stream);
    });
  });
}

PyObject* group_all_gather(PyObject* self, PyObject* const* values, Py_ssize_t count, PyObject* names) {
  return guarded([&]() -> PyObject* {
    static constexpr const char* kUse = "DeviceGroup.all_gather";
    const Arguments arguments(kUse, {"array", "out", "stream"}, 1, values, count, names);
    GroupCall call(self, arguments[0], arguments[1], kUse);
    const std::size_t part = call.is_in_place() ? call.part_of(call.in()) : call.in().num_elements();
    call.expect_out(part * call.num_members());
    const std::size_t own_begin = call.is_in_place() ? call.own_rank() * part * size_of(call.in().type) : 0;
    return call.run(arguments[2], [&](memory::StreamHandle stream) {
      call.group.all_gather(call.in().data() + own_begin, call.out().data(), part, call.in().type, stream);
    });
  });
}

PyObject* group_reduce_scatter(PyObject* self, PyObject* const* values, Py_ssize_t count, PyObject* names) {
  return guarded([&]() -> PyObject* {
    static constexpr const char* kUse = "DeviceGroup.reduce_scatter";
    const Arguments arguments(kUse, {"array", "out", "op", "stream"}, 1, values, count, names);
    GroupCall call(self, arguments[0], arguments[1], kUse);
    const std::size_t part = call.part_of(call.in());
    if (!call.is_in_place()) call.expect_out(part);
    const std::size_t own_begin = call.is_in_place() ? call.own_rank() * part * size_of(call.in().type) : 0;
    return call.run(arguments[3], [&](memory::StreamHandle stream) {
      call.group.reduce_scatter(call.in().data(), call.out().data() + own_begin, call.in().num_elements(),
                                call.in().type, reducer_from(arguments[2], kUse), stream);
    });
  });
}

PyObject* group_all_to_all(PyObject* self, PyObject* const* values, Py_ssize_t count, PyObject* names) {
  return guarded([&]() -> PyObject* {
    static constexpr const char* kUse = "DeviceGroup.all_to_all";
    const Arguments arguments(kUse, {"array", "out", "stream"}, 1, values, count, names);
    GroupCall call(self, arguments[0], arguments[1], kUse);
    call.part_of(call.in());
    call.expect_out(call.in().num_elements());
    return call.run(arguments[2], [&](memory::StreamHandle stream) {
      call.group.all_to_all(call.in().data(), call.out().data(), call.in().num_elements(), call.in().type,
                            stream);
    });
  });
}

PyObject* group_over(PyObject* self, PyObject*) {
  return guarded([&]() -> PyObject* {
    const queued::DeviceGroup& group = open_group(self);
    return wrap_future(*group_parts(self).engine, group.over()).release();
  });
}

PyObject* group_close(PyObject* self, PyObject*) {
  return guarded([&]() -> PyObject* {
    const queued::DeviceGroup& group = open_group(self);
    return wrap_future(*group_parts(self).engine, group.close()).release();
  });
}

PyObject* get_group_rank(PyObject* self, void*) {
  return guarded([&] { return PyLong_FromLong(group_parts(self).group->rank()); });
}
PyObject* get_group_size(PyObject* self, void*) {
  return guarded([&] { return PyLong_FromLong(group_parts(self).group->size()); });
}
PyObject* get_group_kind(PyObject* self, void*) {
  return guarded([&] { return make_text(memory::place_name(group_parts(self).group->device())).release(); });
}

PyObject* represent_group(PyObject* self) {
  return guarded([&] {
    const queued::DeviceGroup& group = *group_parts(self).group;
    return make_text(base::format("<weft.pgas.DeviceGroup, rank {} of {} on {}>", group.rank(), group.size(),
                                  memory::place_name(group.device())))
        .release();
  });
}

PyGetSetDef group_attributes[] = {
    {"rank", &get_group_rank, nullptr, "The number of this PE in the group, from 0: its rank in the team.",
     nullptr},
    {"size", &get_group_size, nullptr, "The number of members.", nullptr},
    {"kind", &get_group_kind, nullptr, "The device of this member: ``\"cuda:0\"``.", nullptr},
    {},
};

PyMethodDef group_methods[] = {
    {"broadcast", as_method(&group_broadcast), METH_FASTCALL | METH_KEYWORDS,
     R"(broadcast($self, array, root=0, stream=None)
--

Queues: the elements of the array of `root` replace those of the others.

Args:
    array: contiguous and writable memory of the group's device, of int32, int64, float16, bfloat16, float32 or float64, with as
        many elements of the same type on all members. It stays until the operation is over.
    root: a rank.
    stream: as weft.stream_done() takes it. None: the one that the array names, as arrays of CuPy and ``array.on(stream)`` do, else
        the stream of programs that name none. For an array of PyTorch pass ``torch.cuda.current_stream()``.

Raises:
    weft.Error: the array cannot be used, there is no such rank, or the group is closed. Nothing is queued then.)"},
    {"reduce", as_method(&group_reduce), METH_FASTCALL | METH_KEYWORDS,
     R"(reduce($self, array, out=None, op=None, root=0, stream=None)
--

Queues: the elements of all members, combined by rank from left to right, on `root`.

Args:
    array: as broadcast() takes it; it may be read-only if there is an `out`.
    out: gets the result on `root`, with as many elements of the same type; unused on others. None: the result replaces `array`.
    op: weft.Reducer.sum, product, min or max. None: sum. float16 and bfloat16 are combined as float32 and rounded once.
    root: a rank.
    stream: see broadcast().

Raises:
    weft.Error: see broadcast(); also arrays that overlap, or that differ in type or size.)"},
    {"all_reduce", as_method(&group_all_reduce), METH_FASTCALL | METH_KEYWORDS,
     R"(all_reduce($self, array, out=None, op=None, stream=None)
--

Queues: the elements of all members, combined by rank from left to right, on all members with the same bits. See reduce().)"},
    {"all_gather", as_method(&group_all_gather), METH_FASTCALL | METH_KEYWORDS,
     R"(all_gather($self, array, out=None, stream=None)
--

Queues: `out` gets the arrays of all members, by rank.

Args:
    array: see reduce().
    out: with ``size`` times as many elements. `array` may be its own part. None: `array` is the whole, with the own part in place.
    stream: see broadcast().

Raises:
    weft.Error: see reduce().)"},
    {"reduce_scatter", as_method(&group_reduce_scatter), METH_FASTCALL | METH_KEYWORDS,
     R"(reduce_scatter($self, array, out=None, op=None, stream=None)
--

Queues: `out` gets this member's part of the combined arrays.

Args:
    array: with ``size`` parts of equal size, by rank; see reduce().
    out: of the size of a part. It may be the first part of `array`, or the own one. None: the own part of `array`.
    op: see reduce().
    stream: see broadcast().

Raises:
    weft.Error: see reduce().)"},
    {"all_to_all", as_method(&group_all_to_all), METH_FASTCALL | METH_KEYWORDS,
     R"(all_to_all($self, array, out=None, stream=None)
--

Queues: part number i of `array` goes to rank i, and part number i of `out` comes from rank i.

Args:
    array: with ``size`` parts of equal size; see reduce().
    out: with as many elements. None: the parts that arrive replace those of `array`.
    stream: see broadcast().

Raises:
    weft.Error: see reduce().)"},
    {"over", &group_over, METH_NOARGS, R"(over($self, /)
--

Awaitable: ready when what has been queued is over. Work in graphs does not count.

Raises:
    weft.Error: the group is closed; awaiting raises the first failure of the streams.)"},
    {"close", &group_close, METH_NOARGS, R"(close($self, /)
--

Frees the memory of the group. Graphs with its operations must not be launched any more.

Returns:
    a weft.Future, ready when all members have closed the group and their streams have done its operations.)"},
    {},
};

PyType_Slot group_slots[] = {
    {Py_tp_dealloc, reinterpret_cast<void*>(&deallocate_device_group)},
    {Py_tp_getset, group_attributes},
    {Py_tp_methods, group_methods},
    {Py_tp_repr, reinterpret_cast<void*>(&represent_group)},
    {Py_tp_doc,
     const_cast<char*>(
         R"(Collectives of device arrays among PEs of one host, queued on streams. Team.device_group() makes it.

A call queues the operation behind the work of a stream and returns None. Work that is queued on the stream later sees the result, and no
CPU takes part. If a graph is being captured from the stream, each launch of the graph does the operation; the program then keeps the
group and the arrays. All members queue the same operations, with the same sizes and types, in the same order, and one after
another: on one stream, or on streams that the program orders. Sizes that differ give undefined elements.)")},
    {0, nullptr},
};
PyType_Spec group_spec = {"weft.pgas.DeviceGroup", sizeof(DeviceGroupObject), 0,
                          Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION, group_slots};

Ref make_group_object(Engine& engine, const queued::DeviceGroup& group) {
  Ref object = checked(PyType_GenericAlloc(device_group_type, 0));
  new (&group_parts(object.get()))
      DeviceGroupParts{EngineRef(engine), std::make_shared<queued::DeviceGroup>(group)};
  return object;
}

memory::Place device_or_own(Engine& engine, PyObject* device, const char* use) {
  if (is_given_object(device)) return place_from(device, use);
  const bool has_gpu = engine.runtime().memory().backend(memory::Kind::kCuda) != nullptr;
  return engine.runtime().own_place(has_gpu ? memory::Kind::kCuda : memory::Kind::kEmulated);
}

// A future of the group that `start(place, options)` makes.
template <class Start>
Ref start_group(Engine& engine, PyObject* device, PyObject* place_bytes, const char* use, Start start) {
  queued::DeviceGroupOptions options;
  const memory::Place place = device_or_own(engine, device, use);
  if (is_given_object(place_bytes)) {
    const std::int64_t size_bytes = integer_from(place_bytes);
    options.place_bytes = size_bytes < 0 ? 0 : static_cast<std::size_t>(size_bytes);
  }
  auto* state = new PyFutureState(engine);
  Ref future = make_future_object(state);
  start(place, options)
      .then([future, engine = EngineRef(engine)](const runtime::Future<queued::DeviceGroup>& ready) {
        PyFutureState& result = *future_state(future.get());
        if (ready.state()->error()) return result.set_error(ready.state()->error());
        result.set(make_group_object(*engine, ready.get()));
      });
  return future;
}

PyObject* chare_device_group(PyObject*, PyObject* const* values, Py_ssize_t count, PyObject* keywords) {
  return guarded([&]() -> PyObject* {
    static constexpr const char* kUse = "weft.device_group";
    const Arguments arguments(kUse, {"self", "device", "place_bytes"}, 1, values, count, keywords);
    if (PyObject_TypeCheck(arguments[0], chare_type()) == 0) {
      throw base::Error(base::StatusCode::kInvalidArgument,
                        base::format("{} takes the chare that becomes a member, not a {}", kUse,
                                     type_name_of(arguments[0])));
    }
    PyChare& self = chare_of(arguments[0]);
    return start_group(
               Engine::current(), arguments[1], arguments[2], kUse,
               [&](auto place, const auto& options) { return chare::device_group(self, place, options); })
        .release();
  });
}

PyMethodDef group_functions[] = {
    {"device_group", as_method(&chare_device_group), METH_FASTCALL | METH_KEYWORDS,
     R"(device_group($module, self, device=None, place_bytes=None)
--

Collective: a weft.pgas.DeviceGroup of the elements of a collection, for collectives of device arrays that are queued on streams.

All elements call it, and take part in no reduction of the collection before the future is ready. Element number i is rank i. They
are at most 16, on PEs of one host whose devices reach one another, and each has a stream of its own.

Args:
    self: the element, of a weft.Group or weft.Array. It does not move before the future is ready, and cannot travel with the group.
    device: the PE's own device, such as ``"cuda"``. None: its GPU, or an emulated device if the process can use no GPU.
    place_bytes: as for Team.device_group().

Returns:
    a weft.Future of the group. If one member fails, the futures of all raise its weft.Error: with code "unsupported" if a device
    does not reach that of a peer.

Raises:
    weft.Error: not a chare, one of a sparse array, there is no such device, or the job has ended.)"},
    {},
};

}  // namespace

Ref start_device_group(TeamParts& team, PyObject* device, PyObject* place_bytes, const char* use) {
  return start_group(*team.engine, device, place_bytes, use,
                     [&](auto place, const auto& options) { return team.team.device_group(place, options); });
}

void init_device_group(PyObject* module) {
  device_group_type = add_type(module, group_spec);
  add_functions(module, group_functions);
}

}  // namespace weft::python
