// weft._core: the extension module. Each topic adds its types and functions to the module and its forms to the
// codec.
#include "await/closing.h"
#include "await/coroutine.h"
#include "await/future.h"
#include "await/operation.h"
#include "await/threads/following.h"
#include "await/timer.h"
#include "await/travelling_future.h"
#include "await/turn.h"
#include "buffers/arrays/array_codec.h"
#include "buffers/device/emulated.h"
#include "buffers/device_array_type.h"
#include "buffers/in_place_argument.h"
#include "buffers/object_buffer.h"
#include "buffers/receive_buffer.h"
#include "buffers/registration.h"
#include "buffers/streams/stream.h"
#include "channel/channel.h"
#include "channel/queued_channel.h"
#include "chare/calls/entry_method.h"
#include "chare/calls/sent.h"
#include "chare/chare_type.h"
#include "chare/checkpoint.h"
#include "chare/collections/aggregated_proxy.h"
#include "chare/collections/collection_type.h"
#include "chare/collections/combined_section.h"
#include "chare/collections/element_proxy.h"
#include "chare/collections/section.h"
#include "codec/byte_values.h"
#include "codec/landed_memory.h"
#include "codec/linked_pickle.h"
#include "codec/no_copy.h"
#include "codec/separate_values.h"
#include "engine/ending.h"
#include "engine/engine.h"
#include "job/own_device.h"
#include "job/report.h"
#include "job/run.h"
#include "load_balancing/comparison.h"
#include "load_balancing/python_strategy.h"
#include "pgas/memory/atomics.h"
#include "pgas/memory/copies.h"
#include "pgas/memory/global_pointer.h"
#include "pgas/memory/put_get.h"
#include "pgas/memory/segment_object.h"
#include "pgas/memory/stream_signals.h"
#include "pgas/teams/device_group.h"
#include "pgas/teams/dist_object.h"
#include "pgas/teams/lone_main.h"
#include "pgas/teams/team.h"
#include "support/errors.h"
#include "support/importable.h"
#include "support/support.h"

namespace weft::python {

namespace {

void init_topics(PyObject* module) {
  init_engine();
  init_errors(module);
  init_importable(module);
  init_ending(module);
  init_landed_memory(module);
  init_no_copy(module);
  init_byte_values(module);
  init_linked_pickle(module);
  init_separate_values(module);
  init_operation(module);
  init_future(module);
  init_travelling_futures(module);
  init_coroutine(module);
  init_following(module);
  init_turn(module);
  init_timer(module);
  init_closing(module);
  init_array_codec(module);
  init_object_buffer(module);
  init_device_array(module);
  init_in_place_arguments(module);
  init_stream(module);
  init_emulated(module);
  init_registration(module);
  init_receive_buffer(module);
  init_chare(module);
  init_element_proxy(module);
  init_collection_proxy(module);
  init_entry_method(module);
  init_section(module);
  init_combined_section(module);
  init_aggregated_proxy(module);
  init_sent(module);
  init_checkpoint(module);
  init_channel(module);
  init_queued_channel(module);
  init_team(module);
  init_device_group(module);
  init_lone_main(module);
  init_dist_object(module);
  init_global_pointer(module);
  init_segment(module);
  init_put_get(module);
  init_copies(module);
  init_stream_signals(module);
  init_atomics(module);
  init_own_device(module);
  init_run(module);
  init_report(module);
  init_load_balancing(module);
  init_python_strategy(module);
}

PyModuleDef definition = {
    .m_base = PyModuleDef_HEAD_INIT,
    .m_name = "weft._core",
    .m_doc = "The extension module: the runtime shared with C++. Use the names from `weft`.",
    .m_size = -1,  // one per process: a second interpreter cannot load it
    .m_methods = nullptr,
    .m_slots = nullptr,
    .m_traverse = nullptr,
    .m_clear = nullptr,
    .m_free = nullptr,
};

}  // namespace

}  // namespace weft::python

PyMODINIT_FUNC PyInit__core() {
  using namespace weft::python;
  return guarded([]() -> PyObject* {
    Ref module = checked(PyModule_Create(&definition));
    init_topics(module.get());
    return module.release();
  });
}
