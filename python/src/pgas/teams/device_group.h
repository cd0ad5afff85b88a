// weft.pgas.DeviceGroup: collectives of device arrays, queued on streams.
#pragma once

#include "pgas/teams/team_object.h"
#include "support/support.h"

namespace weft::python {

void init_device_group(PyObject* module);

// Team.device_group(): a weft.Future of the group. The arguments may be null or None. Throws base::Error if they are no arguments; a
// device that this PE cannot use is a failure of all members.
Ref start_device_group(TeamParts& team, PyObject* device, PyObject* place_bytes, const char* use);

}  // namespace weft::python
