// Teams of the PGAS model in one header. Start here: world.h, team.h, rpc.h.
#pragma once

#include "weft/pgas/dist_object.h"
#include "weft/pgas/remote_call.h"
#include "weft/pgas/rpc.h"
#include "weft/pgas/team.h"
#include "weft/pgas/world.h"
