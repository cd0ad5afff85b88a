// Weft's C++ API in one header. Start here: chare/chare.h, chare/proxy.h, channel/channel.h,
// runtime/runtime.h.
#pragma once

#include "weft/base/error.h"
#include "weft/base/pup.h"
#include "weft/channel/channel.h"
#include "weft/chare/chare.h"
#include "weft/chare/checkpoint.h"
#include "weft/chare/payload.h"
#include "weft/chare/proxy.h"
#include "weft/chare/when.h"
#include "weft/job/job.h"
#include "weft/memory/buffer.h"
#include "weft/runtime/device.h"
#include "weft/runtime/future.h"
#include "weft/runtime/future_list.h"
#include "weft/runtime/operation.h"
#include "weft/runtime/reduction.h"
#include "weft/runtime/registered_memory.h"
#include "weft/runtime/runtime.h"
#include "weft/runtime/stream.h"
#include "weft/runtime/task.h"

namespace weft {

using base::Error;
using base::pack;
using base::RemoteError;
using base::Status;
using base::StatusCode;
using base::unpack;
using channel::Channel;
using chare::Array;
using chare::Chare;
using chare::checkpoint;
using chare::CollectionProxy;
using chare::ElementProxy;
using chare::Group;
using chare::has_checkpoint;
using chare::Index;
using chare::Landing;
using chare::Map;
using chare::Moved;
using chare::nocopy;
using chare::Payload;
using chare::Post;
using chare::PostEntryMethods;
using chare::restore;
using chare::Shape;
using chare::Singleton;
using chare::target_of;
using chare::When;
using chare::WhenConditions;
using job::run;
using memory::Buffer;
using memory::ConstBuffer;
using memory::Kind;
using memory::Place;
using runtime::device_of;
using runtime::DeviceArray;
using runtime::DeviceView;
using runtime::Future;
using runtime::FutureList;
using runtime::Operation;
using runtime::Reducer;
using runtime::RegisteredMemory;
using runtime::room;
using runtime::Runtime;
using runtime::Stream;
using runtime::stream_done;
using runtime::Target;
using runtime::Task;
using runtime::yield_now;

}  // namespace weft
