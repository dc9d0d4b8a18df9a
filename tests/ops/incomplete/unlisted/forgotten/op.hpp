// Nobody includes this: its folder is not in ops.def.
#pragma once
